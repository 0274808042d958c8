// Checkpointing of a chain as a pure problem: numbers in, a tree of stretches out. It knows no programs.
//
// A chain is run forward link by link, then backward link by link from its end. A link that is rerun later leaves only the value
// that it carries on; a link that keeps leaves what its backward reads, in one of several modes. The least time is found by a
// dynamic program over stretches and bytes, as in Beaumont et al., "Optimal checkpointing for heterogeneous chains":
//
//   opt(s, t, m) = least of
//     keep:   link s keeps (in the best mode), then opt(s + 1, t, m - kept)
//     leave:  links s .. s' - 1 leave the value behind them, then opt(s', t, m - carried), then opt(s, s' - 1, m)
//
// where the input of link s is held outside m. Under these rules the answer is exact, up to the rounding of bytes to slots.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace snug {

// Peaks do not include the link's input, which the caller holds.
struct ChainMode {
  std::int64_t kept_bytes = 0;          // from the link's run to its backward; with the value that it carries on
  std::int64_t forward_bytes = 0;       // most while it runs and keeps that
  std::int64_t last_forward_bytes = 0;  // the same when nothing after it has to be made
  std::int64_t backward_bytes = 0;      // most while its backward runs, gradients included
  double again_seconds = 0;             // to run it again
  double last_seconds = 0;              // to run it again when nothing after it has to be made
  double renew_seconds = 0;             // during its backward: for what the mode does not keep
};

struct ChainLink {
  std::vector<ChainMode> modes;     // ways to keep; at least one
  std::int64_t carried_bytes = 0;   // of the value that leads on from its end
  std::int64_t pass_bytes = 0;      // most while it runs and keeps nothing but that
  double pass_seconds = 0;          // to run it again like this
  std::int64_t gradient_bytes = 0;  // there when its backward begins
};

// A tree of regions, as in passes/checkpoint/regions.h: region 0 is the first run, any other is run again before its backward.
// A region's last link belongs to the region itself.
struct ChainPlan {
  std::vector<std::size_t> parent{0};
  std::vector<std::size_t> region;  // by link: the one it keeps in
  std::vector<std::size_t> mode;    // by link
};

struct ChainFigures {
  double seconds = 0;  // beyond one forward and one backward run
  std::int64_t peak_bytes = 0;
  std::size_t peak_link = 0;
};

// What a plan takes, found by simulating it; independent of how the plan was made.
ChainFigures run_chain(const std::vector<ChainLink>& links, const ChainPlan& plan);

class ChainProgram {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Solves for every number of bytes up to `most_bytes` at once, in steps of unit_bytes(), of which there are `slots` at most. In
  // chains of very many links, short stretches are solved exactly, and long ones in groups of links.
  ChainProgram(std::vector<ChainLink> links, std::int64_t most_bytes, std::int64_t slots);

  std::int64_t unit_bytes() const { return unit_; }
  // The numbers of bytes at which a faster plan becomes possible, ascending; empty when nothing fits.
  std::vector<std::int64_t> steps() const;
  // The fewest seconds within that many bytes; kNever when nothing fits.
  double seconds(std::int64_t bytes) const;
  std::optional<ChainPlan> plan(std::int64_t bytes) const;

 private:
  // Seconds by number of slots. In most rows few numbers are neither too small nor more than enough, and only those are stored: a
  // search solves several chains at a time, each with hundreds of rows.
  struct Row {
    std::int64_t begin = 0;      // with fewer: never
    std::vector<double> values;  // from `begin` on; the last applies to all larger numbers. Empty: never

    double at(std::int64_t slots) const;
  };

  // Links [first, first + count) keep, in one mode: the slots it takes and leaves occupied, and the seconds.
  struct Keep {
    std::int64_t least = 0;
    std::int64_t kept = 0;
    double seconds = 0;
  };
  struct Leave {
    std::int64_t least = 0;
    std::int64_t carried = 0;
    double seconds = 0;
  };

  std::int64_t slots_of(std::int64_t bytes) const { return (bytes + unit_ / 2) / unit_; }
  std::size_t number(std::size_t first, std::size_t last) const { return number_[first * links_.size() + last]; }
  bool is_short(std::size_t first, std::size_t last) const { return last - first < exact_length_; }
  std::size_t step_within(std::size_t first, std::size_t last) const { return is_short(first, last) ? 1 : group_; }
  Keep keep(std::size_t first, std::size_t count, std::size_t mode, bool is_first_run, std::int64_t gradient) const;
  Keep keep_last(std::size_t link, std::size_t mode, bool is_first_run) const;
  Leave leave(std::size_t first, std::size_t end, bool is_first_run, std::int64_t gradient) const;
  static Row make_row(const std::vector<double>& seconds);
  static void improve(std::vector<double>& best, std::int64_t least, std::int64_t taken, double seconds, const Row& rest,
                      const Row* again);
  void number_stretches();
  void solve(std::size_t first, std::size_t last);
  void solve_first_run(std::size_t first);
  void read_out(ChainPlan& plan, std::size_t region, std::size_t first, std::size_t last, std::int64_t room,
                bool is_first_run) const;
  const Row& row(std::size_t first, std::size_t last, bool is_first_run) const {
    return is_first_run ? first_run_[first] : rows_[number(first, last)];
  }

  static constexpr std::size_t kNoStretch = static_cast<std::size_t>(-1);

  std::vector<ChainLink> links_;
  std::int64_t unit_ = 1;
  std::int64_t slots_ = 0;
  std::size_t group_ = 1;         // long stretches begin and end at multiples of this
  std::size_t exact_length_ = 0;  // stretches up to this many links are short
  std::vector<double> pass_seconds_before_;
  std::vector<std::size_t> number_;  // by first and last link
  std::vector<Row> rows_;            // stretches that are run again
  std::vector<Row> first_run_;       // by first link: from there to the end
};

}  // namespace snug
