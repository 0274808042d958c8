#include "train/random_batches.h"

#include <cstring>

#include "base/error.h"
#include "base/philox.h"
#include "io/elements.h"
#include "ir/loss.h"

namespace snug::train {

namespace {

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed, std::uint64_t batch) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(philox(seed, i, batch).word[0] >> 24U);
  return bytes;
}

std::vector<std::byte> random_labels(std::size_t count, std::uint64_t seed, std::uint64_t batch, std::int64_t classes) {
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < count; ++i)
    labels[i] = static_cast<std::int32_t>(uniform_below(philox(seed, i, batch).word[1], static_cast<std::uint32_t>(classes)));
  const auto bytes = std::as_bytes(std::span(labels));
  return {bytes.begin(), bytes.end()};
}

// How many rows there are of which the state holds the numbers; 0: it holds none.
std::int64_t rows_looked_up(const Program& program, StateId state) {
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      if (node.op->looks_up_in < 0 || section.state_of(node.inputs.front()) != state) continue;
      return section.value(node.inputs[static_cast<std::size_t>(node.op->looks_up_in)]).type.shape[0];
    }
  }
  return 0;
}

std::vector<std::byte> stored_as(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bits_per_element(dtype)) / 8);
  io::convert_elements(DType::f64, std::as_bytes(std::span(values)), dtype, bytes);
  return bytes;
}

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed, std::uint64_t batch) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 2 * uniform_unit(philox(seed, i, batch).word[2]) - 1;
  return values;
}

}  // namespace

RandomBatches::RandomBatches(const Program& program, std::int64_t examples, std::uint64_t seed, std::size_t batches)
    : examples_(static_cast<std::size_t>(examples)), bytes_(batches), inputs_(batches) {
  const ProgramLoss loss = loss_of(program);
  for (std::size_t s = 0; s < program.states.size(); ++s) {
    const State& state = program.states[s];
    if (state.role != Role::input) continue;
    const auto elements = static_cast<std::size_t>(state.type.elements() / program.microbatch) * examples_;
    const std::int64_t rows = rows_looked_up(program, StateId(s));
    names_.push_back(state.name);
    for (std::size_t b = 0; b < batches; ++b) {
      if (StateId(s) == loss.labels)
        bytes_[b].push_back(random_labels(elements, seed, b, loss.classes));
      else if (rows > 0)  // drawn as labels are, but not the same
        bytes_[b].push_back(random_labels(elements, seed + 1, b, rows));
      else if (StateId(s) == loss.weights)
        bytes_[b].push_back(stored_as(state.type.dtype, std::vector<double>(elements, 1.0)));
      else if (is_floating(state.type.dtype))
        bytes_[b].push_back(stored_as(state.type.dtype, random_numbers(elements, seed, b)));
      else if (state.type.dtype == DType::u8)
        bytes_[b].push_back(random_bytes(elements, seed, b));
      else
        throw_user_error("there are no random batches for '{}': its input '{}' is {}, and the range of its numbers is not known",
                         program.name, state.name, to_string(state.type));
    }
  }
  for (std::size_t b = 0; b < batches; ++b) {
    for (std::size_t i = 0; i < names_.size(); ++i) inputs_[b].push_back({.name = names_[i], .bytes = bytes_[b][i]});
  }
}

}  // namespace snug::train
