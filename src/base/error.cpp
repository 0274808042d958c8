#include "base/error.h"

#include <string_view>

namespace snug::detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  // Only the path inside the source tree: a build folder's absolute path is of no use to the reader.
  std::string_view path(file);
  if (const auto at = path.rfind("/src/"); at != std::string_view::npos) path.remove_prefix(at + 1);
  throw InternalError(fmt::format("{} ({}:{}: check '{}' failed)", message, path, line, condition));
}

}  // namespace snug::detail
