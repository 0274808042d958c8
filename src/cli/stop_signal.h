// Ctrl-C and SIGTERM as a wish to end: training finishes its step, saves and goes.
#pragma once

#include <atomic>

namespace snug::cli {

// While it lives, the first signal sets `asked`, and a second one ends the process as usual. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>& asked() const;
  // The signal that asked; 0: none has.
  int signal() const;
};

}  // namespace snug::cli
