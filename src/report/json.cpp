#include "report/json.h"

#include "ir/loss.h"
#include "report/flops.h"
#include "report/layers.h"
#include "report/moments.h"

namespace snug::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestValues = 10;

Json by_class_json(const ByClass& by_class) {
  Json result = Json::object();
  for (std::size_t c = 0; c < by_class.size(); ++c) {
    result[std::string(name_of(static_cast<MemoryClass>(c)))] = by_class[c].count();
  }
  return result;
}

Json flops_json(const PhaseFlops& flops) {
  return {{"forward", flops.forward}, {"backward", flops.backward}, {"recompute", flops.recompute}, {"update", flops.update}};
}

Json peak_json(const Plan& plan, const PeakMoment& peak) {
  Json result;
  result["section"] = to_string(peak.section);
  result["node"] = peak.node;
  const Section* section = plan.program.find_section(peak.section);
  const bool known = section != nullptr && static_cast<std::size_t>(peak.node) < section->nodes.size();
  result["layer"] = known ? section->nodes[static_cast<std::size_t>(peak.node)].layer : "";
  Json largest = Json::array();
  for (std::size_t i = 0; i < peak.largest.size() && i < kLargestValues; ++i) {
    const LiveValue& value = peak.largest[i];
    largest.push_back({{"name", value.name}, {"bytes", value.size.count()}, {"class", name_of(value.memory_class)}});
  }
  result["largest"] = std::move(largest);
  return result;
}

Json layers_json(const Plan& plan, const PeakMoment& peak) {
  Json result = Json::array();
  for (const LayerUse& layer : layers_at_peak(plan, peak)) {
    result.push_back({{"name", layer.name},
                      {"parameters", layer.parameters},
                      {"peak_bytes", total_of(layer.at_peak).count()},
                      {"by_class", by_class_json(layer.at_peak)},
                      {"flops", flops_json(layer.flops)}});
  }
  return result;
}

// For each section of a step one number per node: the bytes alive while it runs, in total and by class.
Json moments_json(const Plan& plan) {
  Json result = Json::array();
  for (const SectionMoments& moments : moments_of_step(plan)) {
    Json live = Json::array();
    Json by_class = Json::object();
    for (std::size_t c = 0; c < kMemoryClasses; ++c) by_class[std::string(name_of(static_cast<MemoryClass>(c)))] = Json::array();
    for (const ByClass& alive : moments.alive) {
      live.push_back(total_of(alive).count());
      for (std::size_t c = 0; c < alive.size(); ++c) {
        by_class[std::string(name_of(static_cast<MemoryClass>(c)))].push_back(alive[c].count());
      }
    }
    result.push_back({{"section", name_of(plan.program.sections[moments.section].kind)},
                      {"live_bytes", std::move(live)},
                      {"by_class", std::move(by_class)}});
  }
  return result;
}

Json ops_json(const StepFlops& flops) {
  Json result = Json::array();
  for (const OpFlops& op : flops.ops) {
    result.push_back({{"op", op.op}, {"phase", name_of(op.phase)}, {"nodes", op.nodes}, {"flops", op.flops}});
  }
  return result;
}

}  // namespace

Json plan_json(const Plan& plan, const PlanContext& context) {
  const PeakMoment peak = peak_moment(plan);
  const StepFlops flops = flops_of_step(plan.program);
  const ParameterCount parameters = count_parameters(plan.program);
  Json result;
  result["model"] = plan.program.name;
  result["batch"] = plan.program.batch;
  result["microbatch"] = plan.program.microbatch;
  const Methods& methods = plan.methods;
  result["precision"] = precision_name(methods.precision.value_or(DType::f32));
  result["nonzero"] = methods.nonzero.value_or(1);
  // A plan from a file of an earlier version does not say by which strategy it recomputes.
  result["checkpoint"] = methods.checkpoint ? to_string(*methods.checkpoint) : "as planned";
  result["compress_bits"] = methods.compress_bits ? Json(*methods.compress_bits) : Json(nullptr);
  result["statistics_group"] = methods.statistics_group ? Json(*methods.statistics_group) : Json(nullptr);
  result["threads"] = context.threads;
  result["budget_bytes"] = context.budget ? Json(context.budget->count()) : Json(nullptr);
  result["planned_peak_bytes"] = plan.planned_peak_bytes.count();
  if (plan.host.planned_peak_bytes > Bytes(0)) result["planned_host_bytes"] = plan.host.planned_peak_bytes.count();
  result["persistent_bytes"] = plan.persistent_bytes.count();
  result["bound_bytes"] = plan.bound_bytes.count();
  result["gap_bytes"] = peak.gap_bytes.count();
  result["by_class"] = by_class_json(peak.by_class);
  result["peak"] = peak_json(plan, peak);
  result["parameters"] = parameters.all;
  result["trainable_parameters"] = parameters.trainable;
  result["flops_ratio"] = flops_ratio(flops.step);
  result["flops"] = flops_json(flops.step);
  // For images the field has always had this name.
  const bool of_images = throughput_of(plan.program).unit == "images";
  result["flops"][of_images ? "per_image" : "per_example"] = {{"forward", flops.per_example.forward},
                                                              {"backward", flops.per_example.backward},
                                                              {"recompute", flops.per_example.recompute}};
  result["predicted_step_seconds"] = context.predicted_step_seconds ? Json(*context.predicted_step_seconds) : Json(nullptr);
  result["costs"] = context.costs;
  result["reference_kernels"] = reference_kernels_json(context.reference_kernels);
  result["plan_seconds"] = plan.plan_seconds;
  Json passes = Json::array();
  for (const PassTiming& timing : plan.pass_timings) passes.push_back({{"name", timing.name}, {"seconds", timing.seconds}});
  result["passes"] = std::move(passes);
  return result;
}

Json profile_json(const Plan& plan, const PlanContext& context) {
  Json result = plan_json(plan, context);
  result["layers"] = layers_json(plan, peak_moment(plan));
  result["moments"] = moments_json(plan);
  result["ops"] = ops_json(flops_of_step(plan.program));
  return result;
}

Json instructions_json(const Backend& backend) {
  if (backend.instructions.empty()) return nullptr;
  return {{"set", backend.instructions},
          {"limited_by", backend.instructions_limit.empty() ? Json(nullptr) : Json(backend.instructions_limit)}};
}

Json kernels_json(std::span<const KernelUse> kernels) {
  Json result = Json::array();
  for (const KernelUse& use : kernels) {
    Json sections = Json::array();
    for (const SectionKind section : use.sections) sections.push_back(name_of(section));
    Json refusals = Json::array();
    for (const KernelRefusal& refusal : use.refusals) refusals.push_back({{"reason", refusal.reason}, {"nodes", refusal.nodes}});
    result.push_back({{"op", use.op},
                      {"kernel", use.kernel},
                      {"is_reference", use.is_reference},
                      {"nodes", use.nodes},
                      {"workspace_bytes", use.workspace.count()},
                      {"sections", std::move(sections)},
                      {"refusals", std::move(refusals)}});
  }
  return result;
}

}  // namespace snug::report
