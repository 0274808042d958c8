// Runs the command as a user does: another process, its output and its exit code.
#pragma once

#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace snug::cli {

struct Ended {
  int exit_code = -1;  // 128 and the signal's number when a signal ended it
  std::string out;
  std::string err;
};

class TemporaryFile {
 public:
  TemporaryFile() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw std::runtime_error("no temporary file can be made");
  }
  ~TemporaryFile() { std::fclose(file_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return fileno(file_); }
  std::string text() {
    std::rewind(file_);
    std::string result;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file_)) > 0;) result.append(buffer, n);
    return result;
  }

 private:
  std::FILE* file_;
};

// `redirect` runs in the child before the command does and may put standard output elsewhere.
inline Ended run_snug(const std::vector<std::string>& arguments, const std::function<void()>& redirect = {}) {
  TemporaryFile out;
  TemporaryFile err;
  std::vector<std::string> words{SNUG_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(out.descriptor(), STDOUT_FILENO);
    dup2(err.descriptor(), STDERR_FILENO);
    if (redirect) redirect();
    execv(SNUG_PROGRAM, argv.data());
    _exit(127);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), .out = out.text(), .err = err.text()};
}

}  // namespace snug::cli
