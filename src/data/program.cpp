#include "data/program.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <span>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"
#include "data/file.h"

extern char** environ;  // NOLINT: POSIX leaves its declaration to us

namespace snug::data {

namespace {

// What a shell reports for a program that SIGINT ended; npm itself exits with it.
constexpr int kInterrupted = 128 + SIGINT;

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A child process that is killed and waited for on destruction, unless it has ended.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ < 0) return;
    ::kill(id_, SIGTERM);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its status once it has ended.
  bool has_ended(int& status) {
    const pid_t result = ::waitpid(id_, &status, WNOHANG);
    if (result == 0 || (result < 0 && errno == EINTR)) return false;
    SNUG_CHECK(result == id_, "waiting for a program: {}", system_message(errno));
    id_ = -1;
    return true;
  }

 private:
  pid_t id_;
};

std::string last_line(const File& file) {
  std::array<std::byte, 2048> tail;
  const std::int64_t size = file_size(file, "standard error");
  const std::int64_t offset = std::max<std::int64_t>(0, size - static_cast<std::int64_t>(tail.size()));
  const std::int64_t count = read_some_at(file, offset, tail);
  if (count <= 0) return "";
  std::string_view text(reinterpret_cast<const char*>(tail.data()), static_cast<std::size_t>(count));
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  const std::size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  return std::string(text.substr(0, 300));
}

}  // namespace

std::string run_program(const std::vector<std::string>& words, const std::function<void()>& while_waiting) {
  const File errors = open_unnamed_file();
  FileActions actions;
  ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions.get(), errors.descriptor(), STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t id = -1;
  const int error = ::posix_spawnp(&id, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  if (error == ENOENT) return fmt::format("the program {} is not installed", words[0]);
  if (error != 0) return fmt::format("the program {} cannot be run: {}", words[0], system_message(error));

  Child child(id);
  int status = 0;
  while (!child.has_ended(status)) {
    if (while_waiting) while_waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) || (WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted)) {
    throw_user_error("interrupted while {} was running", words[0]);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  const std::string how = WIFEXITED(status) ? fmt::format("{} ended with exit code {}", words[0], WEXITSTATUS(status))
                                            : fmt::format("{} was ended by signal {}", words[0], WTERMSIG(status));
  const std::string why = last_line(errors);
  return why.empty() ? how : fmt::format("{} ({})", how, why);
}

}  // namespace snug::data
