#include "cli/stop_signal.h"

#include <csignal>

namespace snug::cli {

namespace {

std::atomic<bool> stop_asked{false};
std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free, "a signal handler may touch them");

void ask_to_stop(int signal) {
  stop_signal = signal;
  stop_asked = true;
  std::signal(signal, SIG_DFL);  // whoever asks twice does not want to wait
}

}  // namespace

StopSignal::StopSignal() {
  stop_asked = false;
  stop_signal = 0;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& StopSignal::asked() const { return stop_asked; }

int StopSignal::signal() const { return stop_signal; }

}  // namespace snug::cli
