#include "plan/frontier.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/process_memory.h"
#include "ops/ops.h"
#include "plan/forms.h"
#include "plan/search.h"

namespace snug {

namespace {

bool has_batch_norm(const Program& model) {
  const std::vector<Node>& nodes = model.section(SectionKind::forward).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->depends_on_batch; });
}

bool has_kernel(const Backend& backend, const OpDef& op) {
  return std::any_of(backend.kernels.begin(), backend.kernels.end(),
                     [&](const KernelDef* kernel) { return kernel->op == op.name; });
}

}  // namespace

bool leaves_out(const FitRequest& request, std::string_view pass) {
  const std::vector<std::string>& disabled = request.options.passes.disabled;
  return std::ranges::find(disabled, pass) != disabled.end();
}

void check_request(const FitRequest& request) {
  check_passes(pipeline(), request.options.passes, request.given);
  const std::int64_t batch = request.options.batch;
  if (batch < 1) throw_user_error("a batch of {} is not possible; use at least 1", batch);
  if (request.given.microbatch && (*request.given.microbatch < 1 || *request.given.microbatch > batch)) {
    throw_user_error("a microbatch of {} out of a batch of {} is not possible", *request.given.microbatch, batch);
  }
  if (request.given.statistics_group) {
    const std::int64_t group = *request.given.statistics_group;
    if (group < 1 || group > batch)
      throw_user_error("a statistics group of {} out of a batch of {} is not possible; use 1 to {}", group, batch, batch);
    const Program model = request.model(request.given.microbatch.value_or(batch));
    if (!has_batch_norm(model)) {
      throw_user_error("'{}' has no batch norm whose statistics could be taken in groups; leave out --statistics-group",
                       model.name);
    }
    if (request.given.microbatch && *request.given.microbatch != batch && *request.given.microbatch % group != 0) {
      throw_user_error("a microbatch of {} does not split into statistics groups of {}; use a multiple of {}, or the whole batch",
                       *request.given.microbatch, group, group);
    }
  }
  SNUG_CHECK(request.options.methods == Methods(), "a request names the methods that are given beside its options");
}

CompileOptions options_for(const FitRequest& request, const Methods& methods) {
  CompileOptions options = request.options;
  const DType precision = methods.precision.value_or(DType::f32);
  options.methods = methods;
  options.update.finds_overflow = precision == DType::f16;
  options.update.stochastic_rounding = request.stochastic_rounding.value_or(precision != DType::f16);
  return options;
}

FrontierPoint plain_point(const FitRequest& request) {
  FrontierPoint point{.methods = request.given};
  point.methods.precision = request.given.precision.value_or(DType::f32);
  point.methods.microbatch = request.given.microbatch.value_or(request.options.batch);
  point.methods.checkpoint = request.given.checkpoint.value_or(CheckpointStrategy{});
  return point;
}

Frontier find_frontier(const FitRequest& request, const Backend& backend) {
  check_request(request);
  Frontier frontier;
  for (const std::vector<FitRequest>& rung : rungs(request, backend)) {
    const bool is_reached =
        !frontier.points.empty() && (!request.budget || frontier.points.front().planned_peak_bytes <= *request.budget);
    if (is_reached) break;
    Frontier of_rung;
    for (const FitRequest& form : rung) of_rung = merged(std::move(of_rung), search_frontier(form, backend));
    frontier = extended_below(std::move(frontier), of_rung);
  }
  return frontier;
}

namespace {

// The best plan of the forms of one rung or several, and the forms that were skipped because they cannot fit.
class BestWithin {
 public:
  BestWithin(Bytes budget, const Backend& backend) : budget_(budget), backend_(backend) {}

  // Whether the rung has a plan that fits.
  bool look_at(const std::vector<FitRequest>& rung) {
    for (const FitRequest& form : rung) {
      const Bytes least = lower_bound_of(form, backend_);
      if (least > budget_) {
        passed_over_.emplace_back(least, form);
        continue;
      }
      search(form);
    }
    return fits();
  }

  // Where nothing fits: the smallest of all. What was skipped may be smaller than what was not.
  PlacedPoint take() {
    for (auto passed = passed_over_.rbegin(); passed != passed_over_.rend() && !fits(); ++passed) {
      if (!best_ || passed->first < best_->point.planned_peak_bytes) search(passed->second);
    }
    return std::move(*best_);
  }

 private:
  bool fits() const { return best_ && best_->point.planned_peak_bytes <= budget_; }

  void search(const FitRequest& form) {
    PlacedPoint found = search_fastest_within(form, backend_);
    best_ = best_ ? better_of(std::move(*best_), std::move(found), budget_) : std::move(found);
    give_back_free_memory();
  }

  Bytes budget_;
  const Backend& backend_;
  std::optional<PlacedPoint> best_;
  std::vector<std::pair<Bytes, FitRequest>> passed_over_;
};

}  // namespace

PlacedPoint find_fastest_within(const FitRequest& request, const Backend& backend) {
  check_request(request);
  SNUG_CHECK(request.budget, "a search for what fits a budget needs one");
  BestWithin best(*request.budget, backend);
  for (const std::vector<FitRequest>& rung : rungs(request, backend)) {
    if (best.look_at(rung)) break;
  }
  return best.take();
}

Plan compile_point(const FitRequest& request, const FrontierPoint& point, const Backend& backend) {
  return compile(request.model(*point.methods.microbatch), backend, options_for(request, point.methods));
}

bool can_compress(const FitRequest& request, const Backend& backend) {
  return has_kernel(backend, ops::pack) && !leaves_out(request, "compress_activations");
}

bool can_be_sparse(const FitRequest& request, const Backend& backend) {
  return !request.given.nonzero && has_kernel(backend, ops::sparse_conv2d) &&
         can_sparsify(request.model(request.given.microbatch.value_or(request.options.batch)));
}

bool leaves_limit_open(const CheckpointStrategy& strategy) {
  return (strategy.kind == CheckpointStrategy::Kind::optimal || strategy.kind == CheckpointStrategy::Kind::greedy) &&
         strategy.limit == Bytes(0);
}

bool depends_on_microbatch(const FitRequest& request) {
  return !request.given.statistics_group &&
         has_batch_norm(request.model(request.given.microbatch.value_or(request.options.batch)));
}

}  // namespace snug
