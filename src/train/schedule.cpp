#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/counted.h"
#include "base/error.h"

namespace snug::train {

namespace {

using Kind = Schedule::Kind;

bool is_rate(double value) { return value >= 0 && std::isfinite(value); }

bool falls_to_its_end(const Schedule& schedule) { return schedule.kind == Kind::cosine || schedule.kind == Kind::linear; }

void check_end(const Schedule& schedule) {
  const std::string_view kind = schedule.kind == Kind::cosine ? "cosine" : "linear";
  if (!is_rate(schedule.final))
    throw_user_error("a {} schedule cannot end at {}; use 0 or a number above it", kind, schedule.final);
  if (schedule.total_steps == 0)
    throw_user_error("a {} schedule needs the number of steps of the whole run; give total steps", kind);
  if (schedule.warmup_steps == schedule.total_steps)
    throw_user_error("a warm-up of {} leaves a {} schedule none of its {}; make it shorter",
                     counted(schedule.warmup_steps, "step"), kind, schedule.total_steps);
}

void check_milestones(const Schedule& schedule) {
  if (schedule.milestones.empty())
    throw UserError("a step schedule has no milestones; give at least one, or use a constant rate");
  if (!(schedule.gamma > 0 && std::isfinite(schedule.gamma)))
    throw_user_error("a step schedule cannot multiply the learning rate by {}; use a gamma above 0, such as 0.1", schedule.gamma);
  for (std::size_t i = 0; i < schedule.milestones.size(); ++i) {
    const std::uint64_t milestone = schedule.milestones[i];
    if (i > 0 && milestone <= schedule.milestones[i - 1])
      throw_user_error("milestone {} comes after milestone {}; list them in rising order", milestone, schedule.milestones[i - 1]);
    if (milestone < schedule.warmup_steps)
      throw_user_error("milestone {} lies within the warm-up of {}; make the warm-up shorter or the milestone later", milestone,
                       counted(schedule.warmup_steps, "step"));
  }
}

}  // namespace

void check(const Schedule& schedule) {
  if (!(schedule.base > 0 && std::isfinite(schedule.base)))
    throw_user_error("a learning rate of {} is not possible; use a number above 0", schedule.base);
  if (!is_rate(schedule.warmup_start))
    throw_user_error("a warm-up cannot start at {}; use 0 or a number above it", schedule.warmup_start);
  if (schedule.total_steps > 0 && schedule.warmup_steps > schedule.total_steps)
    throw_user_error("a warm-up of {} does not fit a run of {}; make it shorter", counted(schedule.warmup_steps, "step"),
                     schedule.total_steps);
  if (schedule.kind == Kind::inverse_sqrt && schedule.warmup_steps == 0)
    throw UserError("an inverse-sqrt schedule falls from the end of its warm-up on, and there is none; give warmup steps");
  if (schedule.kind == Kind::step) check_milestones(schedule);
  if (falls_to_its_end(schedule)) check_end(schedule);
}

double learning_rate(const Schedule& schedule, std::uint64_t step) {
  check(schedule);
  if (step < schedule.warmup_steps) {
    const double share = static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
    return schedule.warmup_start + (schedule.base - schedule.warmup_start) * share;
  }
  switch (schedule.kind) {
    case Kind::constant:
      return schedule.base;
    case Kind::step: {
      const auto passed = std::upper_bound(schedule.milestones.begin(), schedule.milestones.end(), step);
      return schedule.base * std::pow(schedule.gamma, static_cast<double>(passed - schedule.milestones.begin()));
    }
    case Kind::inverse_sqrt:
      return schedule.base * std::sqrt(static_cast<double>(schedule.warmup_steps) / static_cast<double>(step));
    case Kind::cosine:
    case Kind::linear: {
      if (step >= schedule.total_steps) return schedule.final;
      const double share =
          static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(schedule.total_steps - schedule.warmup_steps);
      if (schedule.kind == Kind::linear) return schedule.base + (schedule.final - schedule.base) * share;
      return schedule.final + (schedule.base - schedule.final) * 0.5 * (1 + std::cos(std::numbers::pi * share));
    }
  }
  throw InternalError("a schedule of no known kind");
}

}  // namespace snug::train
