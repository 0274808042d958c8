#include "report/paper_report.h"

#include "report/chart.h"
#include "report/text.h"
#include "report/text_parts.h"

namespace snug::report {

namespace {

using Json = nlohmann::ordered_json;

double times_smaller(Bytes size, Bytes baseline) {
  return size == Bytes(0) ? 1.0 : static_cast<double>(baseline.count()) / static_cast<double>(size.count());
}

Json flops_json(const paper::FlopCount& flops) {
  return {{"forward", flops.forward}, {"backward", flops.backward}, {"recompute", flops.recompute}};
}

}  // namespace

Json paper_json(const PaperReport& report) {
  const paper::Accounting& asked = report.asked;
  Json result;
  result["model"] = report.model;
  result["accounting"] = "paper";
  result["batch"] = report.batch;
  result["microbatch"] = report.microbatch;
  result["precision"] = report.precision;
  result["nonzero"] = report.nonzero;
  result["checkpoint"] = paper::name_of(asked.strategy);
  result["parameters"] = report.parameters;
  result["total_bytes"] = asked.total().count();
  result["model_bytes"] = asked.states.model.count();
  result["optimizer_bytes"] = asked.states.optimizer().count();
  result["activation_bytes"] = asked.activations.total().count();
  result["by_class"] = {{"model", asked.states.model.count()},
                        {"gradient", asked.states.gradient.count()},
                        {"optimizer", asked.states.momentum.count()},
                        {"activation", asked.activations.total().count()}};
  result["peak"] = {{"layer", asked.activations.layer},
                    {"kept_bytes", asked.activations.kept.count()},
                    {"renewed_bytes", asked.activations.renewed.count()},
                    {"gradient_bytes", asked.activations.gradients.count()}};
  result["baseline_bytes"] = report.baseline_bytes.count();
  result["reduction"] = times_smaller(asked.total(), report.baseline_bytes);
  result["flops_ratio"] = asked.flops.ratio();
  result["flops"]["per_image"] = flops_json(asked.flops);
  Json strategies = Json::array();
  for (const paper::Accounting& one : report.strategies) {
    strategies.push_back({{"checkpoint", paper::name_of(one.strategy)},
                          {"total_bytes", one.total().count()},
                          {"activation_bytes", one.activations.total().count()},
                          {"flops_ratio", one.flops.ratio()},
                          {"peak_layer", one.activations.layer}});
  }
  result["strategies"] = std::move(strategies);
  return result;
}

std::string paper_text(const PaperReport& report) {
  constexpr int kBarWidth = 40;
  const paper::Accounting& asked = report.asked;
  const Bytes total = asked.total();
  std::string out;
  put(out, "{}, batch {}", report.model, report.batch);
  if (report.microbatch != report.batch) put(out, " in microbatches of {}", report.microbatch);
  const std::string checkpoint = paper::name_of(asked.strategy);
  put(out, "\n{}, {}", report.precision, checkpoint == "none" ? "no checkpointing" : "checkpointing " + checkpoint);
  if (report.nonzero < 1) put(out, ", {:.4g}% nonzero", 100 * report.nonzero);
  put(out, ", by the paper's rules\n\n");

  const auto line = [&](std::string_view name, Bytes bytes) {
    const double share = share_of(bytes, total);
    put(out, "  {:<13}{:>10}  {:>5.1f}%  {}\n", name, format_bytes(bytes), 100 * share, draw_bar(share, kBarWidth));
  };
  put(out, "{:<15}{:>10}", "Total", format_bytes(total));
  if (total != report.baseline_bytes) {
    put(out, "  {:.1f} times less than {}", times_smaller(total, report.baseline_bytes), format_bytes(report.baseline_bytes));
  }
  put(out, "\n");
  line("model", asked.states.model);
  line("gradient", asked.states.gradient);
  line("momentum", asked.states.momentum);
  line("activation", asked.activations.total());
  put(out, "\nFullest moment backward of {}\n", shorten(asked.activations.layer, kTextWidth - 27));
  for (const auto& [bytes, what] :
       {std::pair(asked.activations.kept, "kept for backward"), std::pair(asked.activations.renewed, "made again for this layer"),
        std::pair(asked.activations.gradients, "gradients of activations")}) {
    if (bytes != Bytes(0)) put(out, "{:15}{:>10}  {}\n", "", format_bytes(bytes), what);
  }

  put(out, "\n{:<15}{:>10}  {:>10}  {:>7}  {:>6}  {}\n", "Checkpointing", "total", "activation", "smaller", "FLOPs",
      "fullest at");
  const Bytes everything = report.strategies.empty() ? Bytes(0) : report.strategies.front().activations.total();
  for (const paper::Accounting& one : report.strategies) {
    const Bytes activations = one.activations.total();
    put(out, "  {:<13}{:>10}  {:>10}  {:>6.2f}x  {:>6.3f}  {}\n", shorten(paper::name_of(one.strategy), 13),
        format_bytes(one.total()), format_bytes(activations), times_smaller(activations, everything), one.flops.ratio(),
        shorten(one.activations.layer, 24));
  }
  put(out, "\nParameters     {}\n", format_count(report.parameters));
  put(out, "FLOPs an image {} forward, {} backward", format_flops(asked.flops.forward), format_flops(asked.flops.backward));
  if (asked.flops.recompute != 0) put(out, ", {} recomputed", format_flops(asked.flops.recompute));
  put(out, "\n");
  return trim_lines(out);
}

}  // namespace snug::report
