// Networks in which more than one value carries on, so that chains are harder to cut.
#pragma once

#include <string>

#include <fmt/format.h>

#include "frontend/graph_builder.h"

namespace snug::testing {

inline constexpr int kLayers = 16;

// Every layer also reads the images, which are recomputed from their bytes.
inline Program images_for_every_layer() {
  frontend::GraphBuilder b("images-for-every-layer", 4);
  const ValueId images = b.images({.channels = 3, .height = 16, .width = 16});
  ValueId x = images;
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = fmt::format("layer{}", i);
    x = b.relu(name + ".relu", b.conv2d(name + ".conv", x, {.out_channels = 3, .padding = 1}));
    x = b.add(name + ".add", x, images);
  }
  b.softmax_cross_entropy(b.linear("fc", b.flatten("flatten", x), 10));
  return std::move(b).finish();
}

// An encoder whose output every layer of the decoder reads.
inline Program encoder_and_decoder() {
  frontend::GraphBuilder b("encoder-and-decoder", 64);
  ValueId x = b.features({32});
  for (int i = 0; i < kLayers; ++i) x = b.relu(fmt::format("encoder{}.relu", i), b.linear(fmt::format("encoder{}.fc", i), x, 32));
  const ValueId memory = x;
  x = b.linear("start", b.relu("fork", x), 32);
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = fmt::format("decoder{}", i);
    x = b.add(name + ".cross", b.linear(name + ".fc", x, 32), b.linear(name + ".key", memory, 32));
    x = b.relu(name + ".relu", x);
  }
  b.softmax_cross_entropy(b.linear("fc", x, 10));
  return std::move(b).finish();
}

// Two values carry on from step to step, and every step reads a mask that is drawn again wherever it is read.
inline Program recurrent(bool has_mask = false) {
  frontend::GraphBuilder b("recurrent", 64);
  const ValueId x = b.features({32});
  const ValueId mask = has_mask ? b.dropout("mask", x, 0.1) : x;
  ValueId hidden = b.relu("hidden", b.linear("hidden.fc", x, 32));
  ValueId cell = b.relu("cell", b.linear("cell.fc", x, 32));
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = fmt::format("step{}", i);
    ValueId gate = hidden;
    for (int k = 0; k < 4; ++k)
      gate = b.relu(fmt::format("{}.gate{}", name, k), b.linear(fmt::format("{}.fc{}", name, k), gate, 32));
    const ValueId forget = b.relu(name + ".forget", b.linear(name + ".forget.fc", cell, 32));
    cell = b.add(name + ".cell", gate, has_mask ? b.add(name + ".masked", forget, mask) : forget);
    hidden = b.add(name + ".hidden", b.relu(name + ".out", b.linear(name + ".out.fc", cell, 32)), gate);
  }
  b.softmax_cross_entropy(b.linear("fc", b.add("both", hidden, cell), 10));
  return std::move(b).finish();
}

}  // namespace snug::testing
