// What a person sees while a run trains: a bar that is redrawn on a terminal, plain lines elsewhere. All of it goes to standard
// error, so that standard output holds the result alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "train/loop.h"

namespace snug::cli {

class TrainingProgress : public train::LoopListener {
 public:
  // `used` of `budget` bytes; without a budget they are the same. `loss` says what is reported and must outlive it.
  TrainingProgress(Bytes used, Bytes budget, const LossFacts& loss);
  ~TrainingProgress() override;

  void on_step(const train::StepReport& report) override;
  void on_evaluation(const train::Evaluation& evaluation, bool best_so_far) override;
  void on_snapshot(std::uint64_t step, const std::filesystem::path& path) override;

 private:
  void say(const std::string& line);
  void clear_bar();

  std::string memory_;
  const LossFacts& loss_;
  bool terminal_;
  bool bar_drawn_ = false;
  std::chrono::steady_clock::time_point last_shown_;
};

// "1:02", "1:02:03"
std::string format_duration(double seconds);
// "0.1234", "not a number"
std::string format_loss(double loss);
// "test accuracy 81.25%", or the loss where it counts nothing else; `prefix`: "test "
std::string describe_metric(const LossFacts& facts, std::uint8_t metric, double value, std::string_view prefix);
// Step, metrics, speed, memory, time left.
std::string status_text(const train::StepReport& report, const std::string& memory, const LossFacts& loss);
// The same in at most `width` columns, and a bar in what room is left.
std::string progress_line(const train::StepReport& report, const std::string& memory, const LossFacts& loss, std::size_t width);

}  // namespace snug::cli
