#include "cli/stop_signal.h"

#include <csignal>

namespace snug::cli {

namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch it");

void ask_to_stop(int signal) {
  stop_asked = true;
  std::signal(signal, SIG_DFL);  // whoever asks twice does not want to wait
}

}  // namespace

StopSignal::StopSignal() {
  stop_asked = false;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& StopSignal::asked() const { return stop_asked; }

}  // namespace snug::cli
