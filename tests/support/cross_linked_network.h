// A network without a chain: every layer reads the results of several before it, so no single value ever carries the forward pass
// on.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph_builder.h"

namespace snug::testing {

inline Program cross_linked_network(std::int64_t batch) {
  frontend::GraphBuilder b("cross-linked", batch);
  ValueId x = b.conv2d("stem", b.images({.channels = 3, .height = 16, .width = 16}), {.out_channels = 16, .padding = 1});
  std::vector<ValueId> values{x};
  for (int i = 0; i < 12; ++i) {
    const std::string name = "layer" + std::to_string(i);
    x = b.relu(name + ".relu", b.batch_norm(name + ".bn", x));
    x = b.conv2d(name + ".conv", x, {.out_channels = 16, .padding = 1});
    for (std::size_t j = 0; j < values.size(); ++j) x = b.add(name + ".add" + std::to_string(j), x, values[j]);
    values.push_back(x);
    if (values.size() > 3) values.erase(values.begin());
  }
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), 10));
  return std::move(b).finish();
}

}  // namespace snug::testing
