#include "passes/checkpoint/greedy_order.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"

namespace snug {

namespace {

// A node is recomputed at most this often. Recursive halving of a chain of 2^n blocks reruns each block up to n times, so no
// reasonable limit needs more.
constexpr int kMostRepeats = 16;
// The rest of what is read next, so that the score stays finite.
constexpr double kLeastRest = 1e-9;
constexpr double kNever = std::numeric_limits<double>::infinity();

// The dropped values around a value, reached through dropped ones: the paper's e*, without the value itself.
struct Neighbors {
  double seconds = 0;   // to recompute them: what the value is made from, and what is needed and made from the value
  Index next_read = 0;  // of the latter, by a node of the problem; the number of nodes when none is read
};

struct Item {
  std::vector<Index> repeatable_readers = {};
  Index end = 0;                  // after it nothing reads the value, or any that may be recomputed from it
  std::vector<Index> reads = {};  // nodes of the problem that will read it, the next at the back
  int wanted_by = 0;              // dropped values that will be needed and are made from this one
  int locks = 0;                  // nodes that run next read it
  bool exists = false;
  bool is_here = false;
  std::size_t place = 0;  // in the list of candidates
  Neighbors neighbors = {};
  bool neighbors_known = false;

  bool is_needed() const { return !reads.empty() || wanted_by > 0; }
};

class Planner {
 public:
  Planner(const OrderProblem& problem, Bytes limit)
      : values_(problem.values),
        nodes_(problem.nodes),
        limit_(limit),
        items_(values_.size()),
        repeats_(nodes_.size(), 0),
        visited_(nodes_.size(), 0) {
    for (Index i = 0; i < nodes_.size(); ++i) {
      begins_.push_back(begins_.back() + nodes_[i].seconds);
      for (const Index input : nodes_[i].inputs) {
        items_[input].reads.push_back(i);
        if (nodes_[i].may_repeat) items_[input].repeatable_readers.push_back(i);
      }
    }
    for (Item& item : items_) std::reverse(item.reads.begin(), item.reads.end());
    for (Index i = static_cast<Index>(nodes_.size()); i-- > 0;) {
      Index end = i;
      for (const Index output : nodes_[i].outputs) {
        if (nodes_[i].may_repeat) end = std::max(end, items_[output].end);
      }
      for (const Index input : nodes_[i].inputs) items_[input].end = std::max(items_[input].end, end);
    }
  }

  std::optional<GreedyOrder> run() {
    for (now_ = 0; now_ < nodes_.size() && is_kept_; ++now_) {
      bring_back(nodes_[now_].inputs);
      run_node(now_, Run::first);
    }
    if (!is_kept_) return std::nullopt;
    return std::move(order_);
  }

 private:
  enum class Run : std::uint8_t { first, again };

  const OrderProblem::Node& maker_of(Index v) const { return nodes_[values_[v].maker]; }

  bool visit(Index node) {
    const bool is_new = visited_[node] != visit_;
    visited_[node] = visit_;
    return is_new;
  }

  // ---- The list ----

  // Recomputes those of these values that were dropped, and what they are made from. They are locked until the node that reads
  // them ran.
  void bring_back(const std::vector<Index>& wanted) {
    std::vector<Index> again;
    ++visit_;
    walk_.clear();
    const auto look_at = [&](const std::vector<Index>& values) {
      for (const Index v : values) {
        ++items_[v].locks;
        if (!items_[v].is_here) walk_.push_back(v);
      }
    };
    look_at(wanted);
    while (!walk_.empty()) {
      const Index maker = values_[walk_.back()].maker;
      walk_.pop_back();
      if (!visit(maker)) continue;
      again.push_back(maker);
      look_at(nodes_[maker].inputs);
    }
    std::sort(again.begin(), again.end());
    for (const Index at : again) run_node(at, Run::again);
  }

  void run_node(Index at, Run run) {
    const OrderProblem::Node& node = nodes_[at];
    const Bytes room = room_for(at, run);
    while (here_ + room > limit_) {
      const std::optional<Index> cheapest = find_cheapest();
      is_kept_ = is_kept_ && cheapest;
      if (!is_kept_) return;
      leave(*cheapest);
    }
    order_.peak = std::max(order_.peak, here_ + room);
    order_.nodes.push_back(at);
    if (run == Run::again) {
      SNUG_CHECK(node.may_repeat && repeats_[at] < kMostRepeats, "node {} cannot run again", at);
      ++repeats_[at];
    }
    for (const Index v : node.outputs) {
      if (!items_[v].is_here) arrive(v);
    }
    for (const Index v : node.inputs) {
      --items_[v].locks;
      if (run == Run::first) items_[v].reads.pop_back();
    }
    for (const Index v : node.inputs) free_if_done(v);
    for (const Index v : node.outputs) free_if_done(v);
  }

  // What the node needs beside what is in memory: its workspace and its outputs, except those in a dying input's bytes.
  Bytes room_for(Index at, Run run) const {
    const OrderProblem::Node& node = nodes_[at];
    Bytes room = node.workspace;
    for (const Index v : node.outputs) room += values_[v].bytes;
    std::vector<Index> done;
    for (const auto& [output, input] : node.gifts) {
      if (std::ranges::count(done, output) + std::ranges::count(done, input) > 0 || !dies_at(at, items_[input], run)) continue;
      done.insert(done.end(), {output, input});
      room -= values_[output].bytes;
    }
    return room;
  }

  bool dies_at(Index at, const Item& input, Run run) const {
    if (input.locks > 1) return false;
    if (run == Run::first) return input.reads.size() == 1 && input.wanted_by == 0;
    const auto comes_back = [&](Index v) { return !items_[v].is_here && items_[v].is_needed(); };
    return input.reads.empty() && input.wanted_by == std::ranges::count_if(nodes_[at].outputs, comes_back);
  }

  // ---- What is in memory ----

  void arrive(Index v) {
    Item& item = items_[v];
    if (item.exists) {
      // It no longer wants what it is made from; that is in memory, and locked.
      if (item.is_needed()) {
        for (const Index input : maker_of(v).inputs) --items_[input].wanted_by;
      }
      forget_neighbors(v);
    }
    item.exists = item.is_here = true;
    item.neighbors_known = false;
    here_ += values_[v].bytes;
    if (!values_[v].may_leave) return;
    item.place = candidates_.size();
    candidates_.push_back(v);
  }

  void free_if_done(Index v) {
    if (items_[v].is_here && !items_[v].is_needed() && items_[v].locks == 0) leave(v);
  }

  void leave(Index v) {
    Item& item = items_[v];
    item.is_here = false;
    here_ -= values_[v].bytes;
    if (values_[v].may_leave) {
      items_[candidates_.back()].place = item.place;
      candidates_[item.place] = candidates_.back();
      candidates_.pop_back();
    }
    if (item.is_needed()) want_inputs(v);
    forget_neighbors(v);
  }

  // What the value is made from has to be in memory when it is recomputed, or be recomputed first.
  void want_inputs(Index v) {
    walk_.assign(1, v);
    while (!walk_.empty()) {
      const Index wanting = walk_.back();
      walk_.pop_back();
      for (const Index input : maker_of(wanting).inputs) {
        if (!items_[input].is_here && !items_[input].is_needed()) walk_.push_back(input);
        ++items_[input].wanted_by;
      }
    }
  }

  // ---- The rule ----

  Index next_read_of(const Item& item) const {
    return item.reads.empty() ? static_cast<Index>(nodes_.size()) : item.reads.back();
  }
  double rest_until(Index node) const { return begins_[node] - begins_[now_] + kLeastRest; }

  std::optional<Index> find_cheapest() {
    std::optional<Index> best;
    double least = kNever;
    for (const Index v : candidates_) {
      Item& item = items_[v];
      if (item.locks > 0) continue;
      const auto bytes = static_cast<double>(values_[v].bytes.count());
      const double alone = maker_of(v).seconds;
      const auto is_worse = [&](double score) { return score > least || (score == least && best && v > *best); };
      // Skips the walk through the dropped values around it where the value alone is expensive enough.
      if (is_worse(alone / (bytes * rest_until(next_read_of(item))))) continue;
      if (!item.neighbors_known) {
        item.neighbors = find_neighbors(v);
        item.neighbors_known = true;
      }
      const double rest = rest_until(std::min(next_read_of(item), item.neighbors.next_read));
      const double score = (alone + item.neighbors.seconds) / (bytes * rest);
      if (score == kNever || is_worse(score)) continue;
      least = score;
      best = v;
    }
    return best;
  }

  // kNever seconds when the value could not be recomputed.
  Neighbors find_neighbors(Index v) {
    Neighbors found{.seconds = 0, .next_read = static_cast<Index>(nodes_.size())};
    const auto may_repeat = [&](Index node) { return nodes_[node].may_repeat && repeats_[node] < kMostRepeats; };
    bool possible = may_repeat(values_[v].maker);
    ++visit_;
    walk_.assign(1, v);
    while (!walk_.empty()) {
      const Index from = walk_.back();
      walk_.pop_back();
      for (const Index input : maker_of(from).inputs) {
        const Index maker = values_[input].maker;
        if (items_[input].is_here || !visit(maker)) continue;
        possible = possible && may_repeat(maker);
        found.seconds += nodes_[maker].seconds;
        walk_.push_back(input);
      }
    }
    if (!possible) found.seconds = kNever;
    walk_.assign(1, v);
    while (!walk_.empty()) {
      const Index from = walk_.back();
      walk_.pop_back();
      for (const Index reader : items_[from].repeatable_readers) {
        bool is_gone = false;
        for (const Index output : nodes_[reader].outputs) {
          const Item& item = items_[output];
          if (!item.exists || item.is_here || !item.is_needed()) continue;
          is_gone = true;
          found.next_read = std::min(found.next_read, next_read_of(item));
          if (visited_[reader] != visit_) walk_.push_back(output);
        }
        if (is_gone && visit(reader)) found.seconds += nodes_[reader].seconds;
      }
    }
    return found;
  }

  // The value came or went: invalidates the neighbors of the values in memory that reach it through dropped ones.
  void forget_neighbors(Index v) {
    ++visit_;
    walk_.assign(1, v);
    while (!walk_.empty()) {
      const Index from = walk_.back();
      walk_.pop_back();
      for (const Index input : maker_of(from).inputs) {
        items_[input].neighbors_known = false;
        if (!items_[input].is_here && visit(values_[input].maker)) walk_.push_back(input);
      }
    }
    ++visit_;
    walk_.assign(1, v);
    while (!walk_.empty()) {
      const Index from = walk_.back();
      walk_.pop_back();
      for (const Index reader : items_[from].repeatable_readers) {
        if (!visit(reader)) continue;
        for (const Index output : nodes_[reader].outputs) {
          items_[output].neighbors_known = false;
          const Item& item = items_[output];
          if (item.exists && !item.is_here && item.end >= now_) walk_.push_back(output);
        }
      }
    }
  }

  const std::vector<OrderProblem::Value>& values_;
  const std::vector<OrderProblem::Node>& nodes_;
  Bytes limit_;
  std::vector<Item> items_;        // by value
  std::vector<int> repeats_;       // by node
  std::vector<double> begins_{0};  // seconds that the problem's nodes take before each, and in total
  std::vector<Index> candidates_;  // values that are in memory and may be dropped
  Bytes here_ = {};
  Index now_ = 0;                       // the node of the problem that is next
  std::vector<std::uint64_t> visited_;  // by node: the last visit
  std::uint64_t visit_ = 0;
  std::vector<Index> walk_;  // values still to look at
  GreedyOrder order_;
  bool is_kept_ = true;  // the limit; once it is exceeded, nothing else matters
};

}  // namespace

std::optional<GreedyOrder> order_greedily(const OrderProblem& problem, Bytes limit) { return Planner(problem, limit).run(); }

}  // namespace snug
