// What the golden tests share: PyTorch's figures (tests/golden), and the weights and batches that they were made with.
#pragma once

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/labeled.h"
#include "train/session.h"

namespace snug {

using Json = nlohmann::json;

inline Json golden(const std::string& name) {
  std::ifstream file(std::string(SNUG_TEST_SOURCE_DIR) + "/golden/" + name);
  return Json::parse(file);
}

// The generator of tests/golden/README.md.
inline double uniform(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = (stream << 32U) + i + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

inline constexpr std::int64_t kSize = 32;

// Channels last, from values drawn in N,C,H,W order.
template <typename T>
std::vector<T> inputs_of_step(std::uint64_t step, std::int64_t batch) {
  std::vector<T> x(static_cast<std::size_t>(batch * 3 * kSize * kSize));
  std::uint64_t i = 0;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t pixel = 0; pixel < kSize * kSize; ++pixel) {
        x[static_cast<std::size_t>((n * kSize * kSize + pixel) * 3 + c)] = static_cast<T>(2.0 * uniform(1000 + step, i++) - 1.0);
      }
    }
  }
  return x;
}

inline std::vector<std::int32_t> labels_of_step(std::uint64_t step, std::int64_t batch) {
  std::vector<std::int32_t> labels;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch); ++i)
    labels.push_back(static_cast<std::int32_t>(uniform(2000 + step, i) * 10.0));
  return labels;
}

inline void write_weights(train::Session& session, const Json& parameters) {
  for (std::uint64_t p = 0; p < parameters.size(); ++p) {
    const std::string name = parameters[p][0];
    std::size_t elements = 1;
    for (const std::size_t dim : parameters[p][1]) elements *= dim;
    std::vector<double> values(elements, name.ends_with(".weight") ? 1.0 : 0.0);
    if (parameters[p][1].size() > 1) {
      const double fan_in = static_cast<double>(elements) / parameters[p][1][0].get<double>();
      for (std::uint64_t i = 0; i < elements; ++i) values[i] = (2.0 * uniform(p, i) - 1.0) * std::sqrt(6.0 / fan_in);
    }
    session.write_state(name, values);
  }
}

template <typename T>
double train_step(train::Session& session, std::uint64_t step) {
  const std::vector<T> x = inputs_of_step<T>(step, session.plan().program.batch);
  return session
      .train_step(support::Labeled(std::as_bytes(std::span(x)), labels_of_step(step, session.plan().program.batch), "features"))
      .loss;
}

}  // namespace snug
