// What a person sees while a run trains: a bar that is redrawn on a terminal, plain lines elsewhere. All of it goes to standard
// error, so that standard output holds the result alone.
#pragma once

#include <chrono>
#include <string>

#include "train/loop.h"

namespace snug::cli {

class TrainingProgress : public train::LoopListener {
 public:
  // `used` of `budget` bytes; without a budget they are the same.
  TrainingProgress(Bytes used, Bytes budget);
  ~TrainingProgress() override;

  void on_step(const train::StepReport& report) override;
  void on_evaluation(const train::Evaluation& evaluation, bool best_so_far) override;
  void on_snapshot(std::uint64_t step, const std::filesystem::path& path) override;

 private:
  void say(const std::string& line);
  void clear_bar();

  std::string memory_;
  bool terminal_;
  bool bar_drawn_ = false;
  std::chrono::steady_clock::time_point last_shown_;
};

// "1:02", "1:02:03"
std::string format_duration(double seconds);
// "0.1234", "not a number"
std::string format_loss(double loss);
// Step, loss, accuracy, speed, memory, time left.
std::string status_text(const train::StepReport& report, const std::string& memory);
// The same in at most `width` columns, and a bar in what room is left.
std::string progress_line(const train::StepReport& report, const std::string& memory, std::size_t width);

}  // namespace snug::cli
