#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/output.h"

namespace snug::cli {

namespace {

using Clock = std::chrono::steady_clock;

// Often enough to look alive; seldom enough that a log of a night's run can be read.
constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr std::chrono::seconds kLineEvery{10};

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::clamp(seconds, 0.0, 3.6e8)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string format_loss(double loss) {
  if (std::isnan(loss)) return "not a number";
  if (std::isinf(loss)) return "infinite";
  return fmt::format("{:.4f}", loss);
}

std::string describe_metric(const LossFacts& facts, std::uint8_t metric, double value, std::string_view prefix) {
  const std::string_view name = facts.metrics[metric];
  return metric == 0 ? fmt::format("{}{} {}", prefix, name, format_loss(value))
                     : fmt::format("{}{} {:.2f}%", prefix, name, 100 * value);
}

std::string status_text(const train::StepReport& report, const std::string& memory, const LossFacts& loss) {
  const int digits = static_cast<int>(std::to_string(report.total_steps).size());
  std::string line =
      fmt::format("step {:>{}}/{}  {}", report.step, digits, report.total_steps, describe_metric(loss, 0, report.loss, ""));
  if (!loss.metrics[1].empty()) line += fmt::format("  {} {:3.0f}%", loss.metrics[1], 100 * report.score);
  if (report.units_per_second > 0) {
    line += fmt::format("  {:.0f} {}/s  {}  {} left", report.units_per_second, loss.unit, memory,
                        format_duration(report.seconds_left));
  }
  return line;
}

std::string progress_line(const train::StepReport& report, const std::string& memory, const LossFacts& loss, std::size_t width) {
  std::string line = status_text(report, memory, loss);
  constexpr std::size_t kShortestBar = 10;
  if (line.size() + kShortestBar + 4 <= width) {
    const std::size_t room = std::min<std::size_t>(width - line.size() - 4, 40);
    const std::size_t full = room * report.step / std::max<std::uint64_t>(1, report.total_steps);
    line += fmt::format("  [{}{}]", std::string(full, '#'), std::string(room - full, '.'));
  }
  return line.substr(0, width);
}

TrainingProgress::TrainingProgress(Bytes used, Bytes budget, const LossFacts& loss)
    : memory_(fmt::format("{} of {}", format_bytes(used), format_bytes(budget))),
      loss_(loss),
      terminal_(isatty(STDERR_FILENO) == 1),
      last_shown_(Clock::now() - kLineEvery) {}

TrainingProgress::~TrainingProgress() { clear_bar(); }

void TrainingProgress::clear_bar() {
  if (bar_drawn_) put("\r\x1b[K");
  bar_drawn_ = false;
}

void TrainingProgress::say(const std::string& line) {
  clear_bar();
  note(line);
}

void TrainingProgress::on_step(const train::StepReport& report) {
  const auto now = Clock::now();
  const bool last = report.step == report.total_steps;
  if (terminal_) {
    if (now - last_shown_ < kRedrawEvery && !last) return;
    put("\r\x1b[K" + progress_line(report, memory_, loss_, terminal_width() - 1));
    bar_drawn_ = true;
  } else {
    if (now - last_shown_ < kLineEvery && !last) return;
    say(status_text(report, memory_, loss_));
  }
  last_shown_ = now;
}

void TrainingProgress::on_evaluation(const train::Evaluation& evaluation, bool best_so_far) {
  std::string line = fmt::format("step {}: {}", evaluation.step, describe_metric(loss_, 0, evaluation.loss, "test "));
  if (!loss_.metrics[1].empty()) line += ", " + describe_metric(loss_, 1, evaluation.score, "test ");
  say(line + (best_so_far ? " (best so far)" : ""));
}

void TrainingProgress::on_snapshot(std::uint64_t /*step*/, const std::filesystem::path& /*path*/) {}

}  // namespace snug::cli
