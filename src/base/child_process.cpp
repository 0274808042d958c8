#include "base/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace snug {

namespace {

// What a child sends back: one letter for how it ended, then its result or the failure's message; of DoesNotFit the smallest
// budget first.
enum class Outcome : char { done = 'd', user_error = 'u', does_not_fit = 'f', internal_error = 'i' };

std::string outcome_of(const std::function<std::string()>& work) {
  const auto say = [](Outcome outcome, const std::string& text) { return static_cast<char>(outcome) + text; };
  try {
    return say(Outcome::done, work());
  } catch (const UserError& error) {
    return say(Outcome::user_error, error.what());
  } catch (const DoesNotFit& error) {
    return say(Outcome::does_not_fit, fmt::format("{} {}", error.smallest_budget_bytes(), error.what()));
  } catch (const std::exception& error) {
    return say(Outcome::internal_error, error.what());
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the parent has ended
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string run_in_child(const std::function<std::string()>& work) {
  int ends[2];
  SNUG_CHECK(pipe(ends) == 0, "pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    throw InternalError(fmt::format("fork: {}", std::strerror(error)));
  }
  if (child == 0) {
    close(ends[0]);
    write_all(ends[1], outcome_of(work));
    _exit(0);  // without the parent's destructors and buffers
  }
  close(ends[1]);
  std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    throw DoesNotFit("the operating system ended the process that did the work (SIGKILL), as it does when memory runs out");
  if (WIFSIGNALED(status))
    throw InternalError(fmt::format("the process that did the work died of '{}'", strsignal(WTERMSIG(status))));
  SNUG_CHECK(!text.empty(), "the process that did the work ended without a result");
  const auto outcome = static_cast<Outcome>(text.front());
  text.erase(0, 1);
  switch (outcome) {
    case Outcome::done:
      return text;
    case Outcome::user_error:
      throw UserError(text);
    case Outcome::does_not_fit: {
      const std::size_t space = text.find(' ');
      throw DoesNotFit(text.substr(space + 1), std::stoll(text.substr(0, space)));
    }
    case Outcome::internal_error:
      break;
  }
  throw InternalError(text);
}

}  // namespace snug
