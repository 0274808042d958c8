// A few steps of training on random images, and every bit that they leave: what exact methods must not change.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "base/philox.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "passes/model/add_shape.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/state_bytes.h"
#include "train/session.h"

namespace snug::testing {

struct TrainedModel {
  std::string name = "wrn-10-1";
  std::int64_t microbatch = 4;
  std::int64_t batch = 6;  // the second microbatch is short
  std::int64_t image_size = 32;
  std::uint64_t steps = 4;
  int threads = 2;
  DType dtype = DType::f32;
  double nonzero = 1;
  SparseOptions sparse = {};
  std::uint64_t rewire_every = 0;      // steps; 0: never
  std::int64_t second_microbatch = 0;  // of a second shape that the last microbatch of a step takes; 0: there is none
};

struct TrainedBits {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> first_momenta;  // behind the first step: its gradients, and a little weight decay
  std::vector<std::byte> states;                             // parameters, momenta, running statistics
  Bytes planned;
  Bytes transient;  // what the planned bytes are above the persistent ones
  Bytes measured;   // when asked for
  Bytes host_planned, host_measured;
};

// Dropout, augmented images, unfused ReLUs with and without batch norm, a maximum's argmax, group norm, a bias.
inline Program dropout_network(std::int64_t microbatch) {
  frontend::GraphBuilder b("dropout-network", microbatch);
  ValueId x = b.images({.channels = 3, .height = 16, .width = 16, .crop_padding = 2});
  x = b.relu("relu1", b.batch_norm("bn1", b.conv2d("conv1", x, {.out_channels = 16, .padding = 1})));
  x = b.dropout("dropout1", b.relu("relu2", b.conv2d("conv2", x, {.out_channels = 16, .padding = 1, .bias = true})), 0.3);
  x = b.max_pool("pool", x);
  x = b.relu("relu3", b.group_norm("gn3", b.conv2d("conv3", x, {.out_channels = 16, .padding = 1}), 4));
  x = b.dropout("dropout2", x, 0.2);
  x = b.relu("relu4", b.conv2d("conv4", x, {.out_channels = 32, .padding = 1}));
  x = b.relu("relu5", b.linear("fc1", b.flatten("flatten", x), 24));
  b.softmax_cross_entropy(b.linear("fc2", b.dropout("dropout3", x, 0.5), 10));
  return std::move(b).finish();
}

inline Program build(const TrainedModel& model, std::int64_t microbatch) {
  if (model.name == "dropout-network") return dropout_network(microbatch);
  return frontend::build_zoo_model(model.name, {.batch = microbatch, .image_size = model.image_size});
}

inline Program build(const TrainedModel& model) {
  Program program = build(model, model.microbatch);
  if (model.second_microbatch == 0) return program;
  return add_shape(std::move(program), build(model, model.second_microbatch));
}

// How the steps are compiled; but for compression, what they compute does not depend on it.
struct TrainedHow {
  std::string_view checkpoint = "none";
  std::vector<std::string> without = {};  // passes turned off
  Methods with = {};                      // beside the checkpoint strategy
  ops::UpdateOptions update = {};
  Bytes red_zone = {};
  bool measured = false;
};

inline TrainedBits trained(const TrainedModel& model, const TrainedHow& how, const Backend& backend) {
  ops::UpdateOptions update = how.update;
  update.stochastic_rounding = model.dtype == DType::bf16;
  Methods methods = how.with;
  methods.precision = model.dtype;
  methods.nonzero = model.nonzero;
  methods.checkpoint = parse_checkpoint_strategy(how.checkpoint);
  train::Session session(compile(build(model), backend,
                                 {.batch = model.batch,
                                  .methods = methods,
                                  .update = update,
                                  .sparse = model.sparse,
                                  .passes = {.disabled = how.without},
                                  .red_zone = how.red_zone}),
                         backend, 5);
  session.set_learning_rate(0.05);
  if (update.clip_norm > 0) session.set_clip_norm(update.clip_norm);
  const Plan& plan = session.plan();
  const Program& program = plan.program;
  const auto bytes =
      static_cast<std::size_t>(program.state(program.find_state("images")).type.bytes().count() / model.microbatch);
  TrainedBits bits;
  if (how.measured) session.executor().start_measuring();
  for (std::uint64_t step = 0; step < model.steps; ++step) {
    std::vector<std::byte> images;
    std::vector<std::int32_t> labels;
    const std::size_t count = bytes * static_cast<std::size_t>(model.batch);
    for (std::size_t i = 0; i < count; ++i) images.push_back(static_cast<std::byte>(philox(3, i, step).word[0]));
    for (std::int32_t i = 0; i < model.batch; ++i) labels.push_back((i * 7 + static_cast<std::int32_t>(step)) % 10);
    bits.losses.push_back(session.train_step(support::Labeled(images, labels)).loss);
    for (const State& state : program.states) {
      if (step == 0 && state.role == Role::optimizer && state.type.dtype != DType::u8)
        bits.first_momenta[state.name] = session.read_state(state.name);
    }
    if (model.rewire_every > 0 && session.step() % model.rewire_every == 0) session.run_periodic();
  }
  bits.states = support::state_bytes(session);
  bits.planned = plan.planned_peak_bytes;
  bits.transient = plan.planned_peak_bytes - plan.persistent_bytes;
  bits.host_planned = plan.host.planned_peak_bytes;
  if (how.measured) bits.measured = session.executor().measured_peak_bytes();
  if (how.measured) bits.host_measured = session.executor().measured_peak_bytes(MemorySpace::host);
  return bits;
}

inline TrainedBits trained(const TrainedModel& model, const TrainedHow& how = {}) {
  return trained(model, how, backends::cpu_backend(model.threads));
}

inline void expect_same_bits(const TrainedBits& bits, const TrainedBits& plain) {
  ASSERT_EQ(bits.losses.size(), plain.losses.size());
  EXPECT_EQ(std::memcmp(bits.losses.data(), plain.losses.data(), plain.losses.size() * sizeof(double)), 0);
  EXPECT_TRUE(bits.states == plain.states);
}

// A test's name may have letters, digits and underscores alone.
inline std::string test_name(std::string text) {
  for (char& c : text) c = c == '*' ? 's' : std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

}  // namespace snug::testing
