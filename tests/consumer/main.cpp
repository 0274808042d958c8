// Builds and runs against the installed package alone; CMakeLists.txt says what that proves.
#include <iostream>

#include <snug/version.h>

int main() {
  std::cout << "consumer: linked with snug " << snug::kVersion << "\n";
  return snug::kVersion.empty() ? 1 : 0;
}
