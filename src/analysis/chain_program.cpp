#include "analysis/chain_program.h"

#include <algorithm>

#include "base/error.h"

namespace snug {

namespace {

// More links than this are put into groups, of which there are at most kMostGroups; stretches of up to kExactLength links stay
// exact.
constexpr std::size_t kMostLinks = 80;
constexpr std::size_t kMostGroups = 56;
constexpr std::size_t kExactLength = 14;

class ChainRun {
 public:
  ChainRun(const std::vector<ChainLink>& links, const ChainPlan& plan) : links_(links), plan_(plan) {
    SNUG_CHECK(plan.region.size() == links.size() && plan.mode.size() == links.size(), "a plan for another chain");
  }

  ChainFigures run() {
    if (!links_.empty()) stretch(0, 0, links_.size() - 1, true);
    return figures_;
  }

 private:
  bool lies_in(std::size_t region, std::size_t around) const {
    while (region > around) region = plan_.parent[region];
    return region == around;
  }

  // The child region of `around` that contains the link.
  std::size_t child_of(std::size_t link, std::size_t around) const {
    std::size_t region = plan_.region[link];
    while (plan_.parent[region] != around) {
      SNUG_CHECK(region > around, "link {} lies outside of region {}", link, around);
      region = plan_.parent[region];
    }
    return region;
  }

  const ChainMode& mode(std::size_t link) const { return links_[link].modes[plan_.mode[link]]; }

  void need(std::int64_t bytes, std::size_t link) {
    if (held_ + bytes <= figures_.peak_bytes) return;
    figures_.peak_bytes = held_ + bytes;
    figures_.peak_link = link;
  }

  struct Item {
    std::size_t first;
    std::size_t last;
    std::size_t region;
  };

  void stretch(std::size_t region, std::size_t first, std::size_t last, bool is_first_run) {
    SNUG_CHECK(plan_.region[last] == region, "region {} must end with a link of its own", region);
    const std::int64_t gradient = is_first_run ? 0 : links_[last].gradient_bytes;
    held_ += gradient;
    std::vector<Item> items;
    for (std::size_t at = first; at <= last; ++at) {
      if (plan_.region[at] == region) {
        items.push_back({at, at, region});
        if (at == last) break;
        need(mode(at).forward_bytes, at);
        held_ += mode(at).kept_bytes;
        if (!is_first_run) figures_.seconds += mode(at).again_seconds;
        continue;
      }
      Item item{at, at, child_of(at, region)};
      while (lies_in(plan_.region[item.last + 1], item.region)) ++item.last;
      for (std::size_t link = item.first; link <= item.last; ++link) {
        const std::int64_t begun_with = link == item.first ? 0 : links_[link - 1].carried_bytes;
        need(begun_with + links_[link].pass_bytes, link);
        if (!is_first_run) figures_.seconds += links_[link].pass_seconds;
      }
      held_ += links_[item.last].carried_bytes;
      items.push_back(item);
      at = item.last;
    }
    need(is_first_run ? mode(last).forward_bytes : mode(last).last_forward_bytes, last);
    if (!is_first_run) figures_.seconds += mode(last).last_seconds;
    held_ -= gradient;

    for (std::size_t i = items.size(); i-- > 0;) {
      const Item& item = items[i];
      if (item.region == region) {
        if (item.last != last) held_ -= mode(item.last).kept_bytes;
        need(mode(item.last).backward_bytes, item.last);
        figures_.seconds += mode(item.last).renew_seconds;
      } else {
        held_ -= links_[item.last].carried_bytes;
        stretch(item.region, item.first, item.last, false);
      }
    }
  }

  const std::vector<ChainLink>& links_;
  const ChainPlan& plan_;
  std::int64_t held_ = 0;
  ChainFigures figures_;
};

}  // namespace

ChainFigures run_chain(const std::vector<ChainLink>& links, const ChainPlan& plan) { return ChainRun(links, plan).run(); }

ChainProgram::ChainProgram(std::vector<ChainLink> links, std::int64_t most_bytes, std::int64_t slots) : links_(std::move(links)) {
  SNUG_CHECK(slots > 0, "a program needs slots");
  unit_ = std::max<std::int64_t>(1, (most_bytes + slots - 1) / slots);
  slots_ = std::max<std::int64_t>(0, most_bytes / unit_);
  const std::size_t count = links_.size();
  pass_seconds_before_.push_back(0);
  for (const ChainLink& link : links_) {
    SNUG_CHECK(!link.modes.empty(), "a link without a way to keep");
    pass_seconds_before_.push_back(pass_seconds_before_.back() + link.pass_seconds);
  }
  group_ = count <= kMostLinks ? 1 : (count + kMostGroups - 1) / kMostGroups;
  exact_length_ = count <= kMostLinks ? count : std::max(kExactLength, group_);
  number_stretches();
  for (std::size_t length = 1; length <= count; ++length) {
    for (std::size_t first = 0; first + length <= count; ++first) {
      if (number(first, first + length - 1) != kNoStretch) solve(first, first + length - 1);
    }
  }
  first_run_.resize(count);
  for (std::size_t first = count; first-- > 0;) solve_first_run(first);
}

void ChainProgram::number_stretches() {
  const std::size_t count = links_.size();
  number_.assign(count * count, kNoStretch);
  std::size_t next = 0;
  for (std::size_t first = 0; first < count; ++first) {
    for (std::size_t last = first; last < count; ++last) {
      const bool is_whole = first % group_ == 0 && ((last + 1) % group_ == 0 || last + 1 == count);
      if (is_short(first, last) || is_whole) number_[first * count + last] = next++;
    }
  }
  rows_.resize(next);
}

ChainProgram::Keep ChainProgram::keep(std::size_t first, std::size_t count, std::size_t mode, bool is_first_run,
                                      std::int64_t gradient) const {
  Keep result;
  for (std::size_t i = first; i < first + count; ++i) {
    const ChainMode& how = links_[i].modes[std::min(mode, links_[i].modes.size() - 1)];
    result.least =
        std::max(result.least, result.kept + std::max(slots_of(how.forward_bytes + gradient), slots_of(how.backward_bytes)));
    result.kept += slots_of(how.kept_bytes);
    result.seconds += how.renew_seconds + (is_first_run ? 0 : how.again_seconds);
  }
  return result;
}

ChainProgram::Keep ChainProgram::keep_last(std::size_t link, std::size_t mode, bool is_first_run) const {
  const ChainMode& how = links_[link].modes[mode];
  const std::int64_t forward = is_first_run ? how.forward_bytes : how.last_forward_bytes + links_[link].gradient_bytes;
  return {.least = std::max(slots_of(forward), slots_of(how.backward_bytes)),
          .kept = 0,
          .seconds = how.renew_seconds + (is_first_run ? 0 : how.last_seconds)};
}

ChainProgram::Leave ChainProgram::leave(std::size_t first, std::size_t end, bool is_first_run, std::int64_t gradient) const {
  std::int64_t peak = 0;
  for (std::size_t i = first; i < end; ++i) {
    peak = std::max(peak, links_[i].pass_bytes + (i == first ? 0 : links_[i - 1].carried_bytes));
  }
  const std::int64_t carried = slots_of(links_[end - 1].carried_bytes);
  return {.least = std::max(carried, slots_of(peak + gradient)),
          .carried = carried,
          .seconds = is_first_run ? 0 : pass_seconds_before_[end] - pass_seconds_before_[first]};
}

double ChainProgram::Row::at(std::int64_t slots) const {
  if (values.empty() || slots < begin) return kNever;
  return values[std::min(static_cast<std::size_t>(slots - begin), values.size() - 1)];
}

ChainProgram::Row ChainProgram::make_row(const std::vector<double>& seconds) {
  const auto first = std::find_if(seconds.begin(), seconds.end(), [](double value) { return value != kNever; });
  if (first == seconds.end()) return {};
  auto end = seconds.end();
  while (end - first > 1 && *(end - 1) == *(end - 2)) --end;
  return {.begin = first - seconds.begin(), .values = std::vector<double>(first, end)};
}

// For every number of slots from `least` on: the smaller of the current value and `seconds` + rest[room - taken] + again[room].
void ChainProgram::improve(std::vector<double>& best, std::int64_t least, std::int64_t taken, double seconds, const Row& rest,
                           const Row* again) {
  if (rest.values.empty() || (again != nullptr && again->values.empty())) return;
  const auto size = static_cast<std::int64_t>(best.size());
  const std::int64_t rest_begin = taken + rest.begin;
  std::int64_t room = std::max({least, rest_begin, again == nullptr ? 0 : again->begin});
  // From these indices on the rows are constant.
  const std::int64_t rest_last = rest_begin + static_cast<std::int64_t>(rest.values.size()) - 1;
  const std::int64_t again_last = again == nullptr ? 0 : again->begin + static_cast<std::int64_t>(again->values.size()) - 1;
  while (room < size) {
    const bool rest_is_flat = room >= rest_last;
    const bool again_is_flat = again == nullptr || room >= again_last;
    std::int64_t end = size;
    if (!rest_is_flat) end = std::min(end, rest_last);
    if (!again_is_flat) end = std::min(end, again_last);
    double* const out = best.data() + room;
    const double behind_flat = seconds + rest.at(room - taken);
    const double more_flat = again == nullptr ? 0 : again->at(room);
    const double* const behind = rest_is_flat ? nullptr : rest.values.data() + (room - rest_begin);
    const double* const more = again_is_flat ? nullptr : again->values.data() + (room - again->begin);
    const std::int64_t count = end - room;
    // The sum has the same order everywhere: read_out() recomputes it to the bit.
    if (rest_is_flat && again_is_flat) {
      const double sum = behind_flat + more_flat;
      for (std::int64_t i = 0; i < count; ++i) out[i] = std::min(out[i], sum);
    } else if (rest_is_flat) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = std::min(out[i], behind_flat + more[i]);
    } else if (again_is_flat) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = std::min(out[i], seconds + behind[i] + more_flat);
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i] = std::min(out[i], seconds + behind[i] + more[i]);
    }
    room = end;
  }
}

void ChainProgram::solve(std::size_t first, std::size_t last) {
  std::vector<double> best(static_cast<std::size_t>(slots_) + 1, kNever);
  const std::int64_t gradient = links_[last].gradient_bytes;
  const std::size_t step = step_within(first, last);
  for (std::size_t mode = 0; mode < links_[first].modes.size(); ++mode) {
    if (first == last) {
      const Keep found = keep_last(first, mode, false);
      for (std::int64_t m = found.least; m <= slots_; ++m) {
        double& at = best[static_cast<std::size_t>(m)];
        at = std::min(at, found.seconds);
      }
    } else {
      const Keep found = keep(first, step, mode, false, gradient);
      improve(best, found.least, found.kept, found.seconds, rows_[number(first + step, last)], nullptr);
    }
  }
  for (std::size_t next = first + step; next <= last; next += step) {
    const Leave found = leave(first, next, false, gradient);
    improve(best, found.least, found.carried, found.seconds, rows_[number(next, last)], &rows_[number(first, next - 1)]);
  }
  rows_[number(first, last)] = make_row(best);
}

void ChainProgram::solve_first_run(std::size_t first) {
  std::vector<double> best(static_cast<std::size_t>(slots_) + 1, kNever);
  const std::size_t last = links_.size() - 1;
  for (std::size_t mode = 0; mode < links_[first].modes.size(); ++mode) {
    if (first == last) {
      const Keep found = keep_last(first, mode, true);
      for (std::int64_t m = found.least; m <= slots_; ++m) {
        double& at = best[static_cast<std::size_t>(m)];
        at = std::min(at, found.seconds);
      }
    } else {
      const Keep found = keep(first, 1, mode, true, 0);
      improve(best, found.least, found.kept, found.seconds, first_run_[first + 1], nullptr);
    }
  }
  for (std::size_t next = first + 1; next <= last; ++next) {
    if (number(first, next - 1) == kNoStretch) continue;
    const Leave found = leave(first, next, true, 0);
    improve(best, found.least, found.carried, found.seconds, first_run_[next], &rows_[number(first, next - 1)]);
  }
  first_run_[first] = make_row(best);
}

std::vector<std::int64_t> ChainProgram::steps() const {
  std::vector<std::int64_t> result;
  if (links_.empty()) return result;
  double before = kNever;
  for (std::int64_t m = 0; m <= slots_; ++m) {
    const double now = first_run_[0].at(m);
    if (now < before) result.push_back(m * unit_);
    before = now;
  }
  return result;
}

double ChainProgram::seconds(std::int64_t bytes) const {
  if (links_.empty()) return 0;
  if (bytes < 0) return kNever;
  return first_run_[0].at(std::min(bytes / unit_, slots_));
}

std::optional<ChainPlan> ChainProgram::plan(std::int64_t bytes) const {
  if (seconds(bytes) == kNever) return std::nullopt;
  ChainPlan plan;
  plan.region.assign(links_.size(), 0);
  plan.mode.assign(links_.size(), 0);
  if (!links_.empty()) read_out(plan, 0, 0, links_.size() - 1, std::min(bytes / unit_, slots_), true);
  return plan;
}

// The sums are those of the solution, in the same order, so one of them is the solution's to the bit.
void ChainProgram::read_out(ChainPlan& plan, std::size_t region, std::size_t first, std::size_t last, std::int64_t room,
                            bool is_first_run) const {
  while (true) {
    const double wanted = row(first, last, is_first_run).at(room);
    const std::int64_t gradient = is_first_run ? 0 : links_[last].gradient_bytes;
    const std::size_t step = is_first_run ? 1 : step_within(first, last);
    bool found = false;
    for (std::size_t mode = 0; mode < links_[first].modes.size() && !found; ++mode) {
      if (first == last) {
        const Keep how = keep_last(first, mode, is_first_run);
        if (room < how.least || how.seconds != wanted) continue;
        plan.region[first] = region;
        plan.mode[first] = mode;
        return;
      }
      const Keep how = keep(first, step, mode, is_first_run, gradient);
      if (room < std::max(how.least, how.kept)) continue;
      if (how.seconds + row(first + step, last, is_first_run).at(room - how.kept) != wanted) continue;
      for (std::size_t i = first; i < first + step; ++i) {
        plan.region[i] = region;
        plan.mode[i] = std::min(mode, links_[i].modes.size() - 1);
      }
      first += step;
      room -= how.kept;
      found = true;
    }
    for (std::size_t next = first + step; next <= last && !found; next += step) {
      if (number(first, next - 1) == kNoStretch) continue;
      const Leave how = leave(first, next, is_first_run, gradient);
      if (room < how.least) continue;
      const double behind = how.seconds + row(next, last, is_first_run).at(room - how.carried);
      if (behind + rows_[number(first, next - 1)].at(room) != wanted) continue;
      plan.parent.push_back(region);
      read_out(plan, plan.parent.size() - 1, first, next - 1, room, false);
      first = next;
      room -= how.carried;
      found = true;
    }
    SNUG_CHECK(found, "no step from link {} to {} gives the solution", first, last);
  }
}

}  // namespace snug
