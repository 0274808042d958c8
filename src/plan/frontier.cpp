#include "plan/frontier.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/process_memory.h"
#include "ops/ops.h"
#include "plan/search.h"
#include "plan/variants.h"

namespace snug {

namespace {

constexpr std::string_view kCompress = "compress_activations";

bool has_batch_norm(const Program& model) {
  const std::vector<Node>& nodes = model.section(SectionKind::forward).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->depends_on_batch; });
}

bool has_kernel(const Backend& backend, const OpDef& op) {
  return std::any_of(backend.kernels.begin(), backend.kernels.end(),
                     [&](const KernelDef* kernel) { return kernel->op == op.name; });
}

bool leaves_out(const FitRequest& request, std::string_view pass) {
  const std::vector<std::string>& disabled = request.options.passes.disabled;
  return std::find(disabled.begin(), disabled.end(), pass) != disabled.end();
}

// What is asked for and left out at once would be left out without a word.
void check_passes(const FitRequest& request) {
  constexpr std::string_view kBoth = "pass '{}' is left out and asked for{}; leave out one of the two";
  for (const std::string& pass : request.options.passes.enabled) {
    if (leaves_out(request, pass)) throw_user_error(kBoth, pass, "");
  }
  if (request.options.compress_bits > 0 && leaves_out(request, kCompress))
    throw_user_error(kBoth, kCompress, fmt::format(", to keep activations in {} bits", request.options.compress_bits));
  if (request.checkpoint && request.checkpoint->kind != CheckpointStrategy::Kind::none && leaves_out(request, "checkpoint"))
    throw_user_error(kBoth, "checkpoint", fmt::format(", for {}", to_string(*request.checkpoint)));
}

}  // namespace

void check_request(const FitRequest& request) {
  check_passes(request);
  const std::int64_t batch = request.options.batch;
  if (batch < 1) throw_user_error("a batch of {} is not possible; use at least 1", batch);
  if (request.microbatch && (*request.microbatch < 1 || *request.microbatch > batch)) {
    throw_user_error("a microbatch of {} out of a batch of {} is not possible", *request.microbatch, batch);
  }
  if (const std::int64_t group = request.statistics_group; group != 0) {
    if (group < 1 || group > batch)
      throw_user_error("a statistics group of {} out of a batch of {} is not possible; use 1 to {}", group, batch, batch);
    const Program model = request.model(request.microbatch.value_or(batch));
    if (!has_batch_norm(model)) {
      throw_user_error("'{}' has no batch norm whose statistics could be taken in groups; leave out --statistics-group",
                       model.name);
    }
    if (request.microbatch && *request.microbatch != batch && *request.microbatch % group != 0) {
      throw_user_error("a microbatch of {} does not split into statistics groups of {}; use a multiple of {}, or the whole batch",
                       *request.microbatch, group, group);
    }
  }
  SNUG_CHECK(request.options.checkpoint == CheckpointStrategy{}, "a request names its checkpoint strategy beside its options");
}

FrontierPoint plain_point(const FitRequest& request) {
  return {.planned_peak_bytes = {},
          .microbatch = request.microbatch.value_or(request.options.batch),
          .checkpoint = request.checkpoint.value_or(CheckpointStrategy{}),
          .workspace_limit = {},
          .compress_bits = request.options.compress_bits};
}

Frontier find_frontier(const FitRequest& request, const Backend& backend) {
  check_request(request);
  Frontier frontier;
  for (const std::vector<Variant>& rung : rungs(request, backend)) {
    const bool is_reached =
        !frontier.points.empty() && (!request.budget || frontier.points.front().planned_peak_bytes <= *request.budget);
    if (is_reached) break;
    Frontier of_rung;
    for (const Variant& variant : rung)
      of_rung = merged(std::move(of_rung), marked(search_frontier(as_variant(request, variant), backend), variant));
    frontier = continued(std::move(frontier), of_rung);
  }
  return frontier;
}

namespace {

// Of the variants of one rung or of several: what was found, and what was passed over because it cannot fit.
class BestWithin {
 public:
  BestWithin(const FitRequest& request, const Backend& backend) : request_(request), backend_(backend) {}

  // Whether the rung has a plan that fits.
  bool look_at(const std::vector<Variant>& rung) {
    for (const Variant& variant : rung) {
      const Bytes least = least_thinkable(as_variant(request_, variant), backend_);
      if (least > *request_.budget) {
        passed_over_.emplace_back(least, variant);
        continue;
      }
      search(variant);
    }
    return fits();
  }

  // Where nothing fits: the smallest of all. What was passed over may be smaller than what was not.
  PlacedPoint take() {
    for (auto passed = passed_over_.rbegin(); passed != passed_over_.rend() && !fits(); ++passed) {
      if (!best_ || passed->first < best_->point.planned_peak_bytes) search(passed->second);
    }
    return std::move(*best_);
  }

 private:
  bool fits() const { return best_ && best_->point.planned_peak_bytes <= *request_.budget; }

  void search(const Variant& variant) {
    PlacedPoint found = search_fastest_within(as_variant(request_, variant), backend_);
    mark(found.point, variant);
    best_ = best_ ? better_of(std::move(*best_), std::move(found), *request_.budget) : std::move(found);
    give_back_free_memory();
  }

  const FitRequest& request_;
  const Backend& backend_;
  std::optional<PlacedPoint> best_;
  std::vector<std::pair<Bytes, Variant>> passed_over_;
};

}  // namespace

PlacedPoint find_fastest_within(const FitRequest& request, const Backend& backend) {
  check_request(request);
  SNUG_CHECK(request.budget, "a search for what fits a budget needs one");
  BestWithin best(request, backend);
  for (const std::vector<Variant>& rung : rungs(request, backend)) {
    if (best.look_at(rung)) break;
  }
  return best.take();
}

Plan compile_point(const FitRequest& request, const FrontierPoint& point, const Backend& backend) {
  const FitRequest asked = as_variant(request, variant_of(point));
  CompileOptions options = asked.options;
  apply(point, options);
  return compile(asked.model(point.microbatch), backend, options);
}

bool can_compress(const FitRequest& request, const Backend& backend) {
  return has_kernel(backend, ops::pack) && !leaves_out(request, kCompress);
}

bool can_be_sparse(const FitRequest& request, const Backend& backend) {
  return !request.share_is_given && request.options.sparse.nonzero == 1 && has_kernel(backend, ops::sparse_conv2d) &&
         can_sparsify(request.model(request.microbatch.value_or(request.options.batch)));
}

bool leaves_limit_open(const CheckpointStrategy& strategy) {
  return (strategy.kind == CheckpointStrategy::Kind::optimal || strategy.kind == CheckpointStrategy::Kind::greedy) &&
         strategy.limit == Bytes(0);
}

bool depends_on_microbatch(const FitRequest& request) {
  return request.statistics_group == 0 && has_batch_norm(request.model(request.microbatch.value_or(request.options.batch)));
}

}  // namespace snug
