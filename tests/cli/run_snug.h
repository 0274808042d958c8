// Runs the command as a user does: another process, its output and its exit code.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
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

// The command while it runs.
class RunningSnug {
 public:
  // `redirect` runs in the child before the command does and may put standard output elsewhere.
  explicit RunningSnug(const std::vector<std::string>& arguments, const std::function<void()>& redirect = {}) {
    std::vector<std::string> words{SNUG_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("fork failed");
    if (child_ == 0) {
      dup2(out_.descriptor(), STDOUT_FILENO);
      dup2(err_.descriptor(), STDERR_FILENO);
      setenv("XDG_CACHE_HOME", "/dev/null", 1);  // what was measured on this machine before must not matter
      if (redirect) redirect();
      execv(SNUG_PROGRAM, argv.data());
      _exit(127);
    }
  }

  void signal(int number) const { kill(child_, number); }

  Ended wait() {
    int status = 0;
    if (waitpid(child_, &status, 0) != child_) throw std::runtime_error("waitpid failed");
    return {
        .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), .out = out_.text(), .err = err_.text()};
  }

 private:
  TemporaryFile out_;
  TemporaryFile err_;
  pid_t child_ = -1;
};

inline Ended run_snug(const std::vector<std::string>& arguments, const std::function<void()>& redirect = {}) {
  return RunningSnug(arguments, redirect).wait();
}

}  // namespace snug::cli
