#include "report/layers.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tiny_plan.h"

namespace snug::report {
namespace {

const LayerUse& named(const std::vector<LayerUse>& layers, const std::string& name) {
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const LayerUse& layer) { return layer.name == name; });
  if (found == layers.end()) throw std::runtime_error("no layer " + name);
  return *found;
}

TEST(Layers, StatesBelongToTheLayerThatReadsThem) {
  const Plan plan = tiny_plan();
  const auto layers = layers_at_peak(plan, peak_moment(plan));
  std::vector<std::string> names;
  for (const LayerUse& layer : layers) names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"body.one.fc", "body.one.relu", "head.fc", "loss", "scalars"}));

  const LayerUse& head = named(layers, "head.fc");
  EXPECT_EQ(head.parameters, 64);
  // weight, gradient, momentum; the workspace of its weight gradient
  EXPECT_EQ(total_of(head.at_peak), Bytes(3 * 256 + 1000));
  const LayerUse& body = named(layers, "body.one.fc");
  EXPECT_EQ(body.parameters, 128 + 16);
  EXPECT_EQ(total_of(body.at_peak), Bytes(4 * 128 + 3 * 64 + 128));  // frozen weight, bias thrice, features
  EXPECT_EQ(total_of(named(layers, "body.one.relu").at_peak), Bytes(256));
  EXPECT_EQ(total_of(named(layers, "loss").at_peak), Bytes(16 + 64));  // labels, gradient of the logits
  EXPECT_EQ(total_of(named(layers, "scalars").at_peak), Bytes(64 + 24));
}

TEST(Layers, TheirBytesSumToTheFullestMoment) {
  const Plan plan = tiny_plan();
  const PeakMoment peak = peak_moment(plan);
  ByClass sum{};
  for (const LayerUse& layer : layers_at_peak(plan, peak)) {
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += layer.at_peak[c];
  }
  EXPECT_EQ(sum, peak.by_class);
}

TEST(Layers, TheirFlopsSumToTheStep) {
  const Plan plan = tiny_plan();
  const StepFlops flops = flops_of_step(plan.program);
  PhaseFlops sum;
  for (const LayerUse& layer : layers_at_peak(plan, peak_moment(plan))) {
    sum.add(Phase::forward, layer.flops.forward);
    sum.add(Phase::backward, layer.flops.backward);
    sum.add(Phase::update, layer.flops.update);
  }
  EXPECT_EQ(sum.forward, flops.step.forward);
  EXPECT_EQ(sum.backward, flops.step.backward);
  EXPECT_EQ(sum.update, flops.step.update);
}

TEST(Layers, AnUpdateCountsForItsParametersLayer) {
  const Plan plan = tiny_plan();
  EXPECT_EQ(named(layers_at_peak(plan, peak_moment(plan)), "head.fc").flops.update, 6 * 64);
}

TEST(Layers, AFusedUpdateCountsForItsParametersLayer) {
  // The update's nodes behind backward's, in the same section.
  std::string text = replaced(tiny_text(), "section update\n", "");
  text = replaced(replaced(text, ".grad@1, ", ".grad@2, "), ".grad@0, scalars", ".grad@1, scalars");
  const Plan plain = tiny_plan(), fused = plan_of(text);
  const auto expected = layers_at_peak(plain, peak_moment(plain)), layers = layers_at_peak(fused, peak_moment(fused));
  ASSERT_EQ(layers.size(), expected.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].name, expected[i].name);
    EXPECT_EQ(layers[i].at_peak, expected[i].at_peak);
    EXPECT_EQ(layers[i].flops.update, 2 * expected[i].flops.update) << "once a microbatch, of which this step has two";
  }
}

TEST(Layers, GroupsKeepEveryByteAndParameter) {
  const Plan plan = tiny_plan();
  const auto layers = layers_at_peak(plan, peak_moment(plan));
  const auto groups = group_layers(layers, 2);
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[0].name, "body.one");
  EXPECT_EQ(groups[0].parameters, 144);
  EXPECT_EQ(total_of(groups[0].at_peak), total_of(layers[0].at_peak) + total_of(layers[1].at_peak));
  EXPECT_EQ(groups[0].flops.forward, layers[0].flops.forward + layers[1].flops.forward);
  EXPECT_EQ(group_layers(layers, 1).front().name, "body");
}

TEST(Layers, FrozenParametersAreCountedButNotAsTrainable) {
  const ParameterCount count = count_parameters(tiny_plan().program);
  EXPECT_EQ(count.all, 128 + 16 + 64);
  EXPECT_EQ(count.trainable, 16 + 64);
}

}  // namespace
}  // namespace snug::report
