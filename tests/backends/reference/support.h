// Values with guarded bytes and a way to run one op on them, for tests of kernels. Everything is indexed logically here, by
// arithmetic of its own, so that a mistake in the kernels' strides shows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "base/half.h"
#include "ir/kernel.h"
#include "ir/scalars.h"
#include "ops/ops.h"

namespace snug::backends {

using Integers = std::vector<std::int64_t>;

inline Layout plain_layout(bool channels_last) { return channels_last ? Layout::channels_last() : Layout::row_major(); }

// The splitmix64 generator, in [-1, 1).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double operator()() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-52 - 1.0;
  }

 private:
  std::uint64_t state_;
};

// A value and its bytes, sentinels on both sides. Fresh bytes are all ones: NaN as a real number.
class Tensor {
 public:
  explicit Tensor(Type type) : type_(std::move(type)), bytes_(size() + 2 * kGuard, std::byte{0xFF}) {
    for (std::size_t i = 0; i < kGuard; ++i) bytes_[i] = bytes_[kGuard + size() + i] = sentinel(i);
  }
  Tensor(Type type, const std::vector<double>& logical) : Tensor(std::move(type)) {
    EXPECT_EQ(static_cast<std::int64_t>(logical.size()), elements()) << to_string(type_);
    std::memset(data(), 0, size());
    for (std::int64_t i = 0; i < elements(); ++i) set(i, logical[static_cast<std::size_t>(i)]);
  }
  static Tensor random(Type type, std::uint64_t seed, double low = -1, double high = 1) {
    Random draw(seed);
    std::vector<double> values(static_cast<std::size_t>(type.elements()));
    for (double& value : values) value = low + (high - low) * 0.5 * (draw() + 1);
    return {std::move(type), values};
  }
  static Tensor scalars(const Scalars& scalars) {
    Tensor tensor({.dtype = DType::u8, .shape = {64}});
    std::memcpy(tensor.data(), &scalars, sizeof scalars);
    return tensor;
  }

  const Type& type() const { return type_; }
  std::int64_t elements() const { return type_.elements(); }
  std::byte* data() { return bytes_.data() + kGuard; }
  const std::byte* data() const { return bytes_.data() + kGuard; }
  std::size_t size() const { return static_cast<std::size_t>(type_.bytes().count()); }
  Operand operand() { return {.type = type_, .data = data()}; }

  bool guards_intact() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != sentinel(i) || bytes_[kGuard + size() + i] != sentinel(i)) return false;
    }
    return true;
  }
  bool same_bytes(const Tensor& other) const { return size() == other.size() && std::memcmp(data(), other.data(), size()) == 0; }

  // By number in row-major order.
  double operator[](std::int64_t logical) const { return read(position_of(logical)); }
  void set(std::int64_t logical, double value) { write(position_of(logical), value); }
  // By index, 0 where a dimension is not given.
  double at(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    return (*this)[number_of({i, j, k, l})];
  }
  std::vector<double> logical() const {
    std::vector<double> values;
    for (std::int64_t i = 0; i < elements(); ++i) values.push_back((*this)[i]);
    return values;
  }
  // The same elements in another layout or with another dtype.
  Tensor as(Type type) const { return {std::move(type), logical()}; }
  Tensor with_layout(bool channels_last) const {
    Type type = type_;
    type.layout = plain_layout(channels_last);
    return as(type);
  }

  std::int64_t number_of(const Integers& index) const {
    std::int64_t number = 0;
    for (std::size_t d = 0; d < type_.shape.rank(); ++d) number = number * type_.shape[d] + index[d];
    return number;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  // Different everywhere, so that a kernel that reads behind a value does not find the same number twice.
  static std::byte sentinel(std::size_t i) { return static_cast<std::byte>(i * 53 + 7); }

  // Channels-last of rank 4 is N,H,W,C in memory; everything else lies in logical order.
  std::int64_t position_of(std::int64_t logical) const {
    if (type_.layout.kind != Layout::Kind::channels_last || type_.shape.rank() != 4) return logical;
    const std::int64_t channels = type_.shape[1], height = type_.shape[2], width = type_.shape[3];
    const std::int64_t w = logical % width, h = logical / width % height, c = logical / width / height % channels;
    const std::int64_t n = logical / width / height / channels;
    return ((n * height + h) * width + w) * channels + c;
  }

  template <typename T>
  T load(std::int64_t position) const {
    T value;
    std::memcpy(&value, data() + position * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
  }
  template <typename T>
  void store(std::int64_t position, T value) {
    std::memcpy(data() + position * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
  }

  double read(std::int64_t position) const {
    switch (type_.dtype) {
      case DType::f64:
        return load<double>(position);
      case DType::f32:
        return load<float>(position);
      case DType::bf16:
        return float_from_bfloat(load<std::uint16_t>(position));
      case DType::f16:
        return float_from_half(load<std::uint16_t>(position));
      case DType::i32:
        return load<std::int32_t>(position);
      case DType::u8:
        return load<std::uint8_t>(position);
      case DType::u4:
        return (load<std::uint8_t>(position / 2) >> (position % 2 == 0 ? 0 : 4)) & 15;
      case DType::bit:
        return (load<std::uint8_t>(position / 8) >> (position % 8)) & 1;
      default:
        ADD_FAILURE() << "no test reads " << name_of(type_.dtype);
        return 0;
    }
  }
  void write(std::int64_t position, double value) {
    switch (type_.dtype) {
      case DType::f64:
        return store(position, value);
      case DType::f32:
        return store(position, static_cast<float>(value));
      case DType::bf16:
        return store(position, bfloat_from_double(value));
      case DType::f16:
        return store(position, half_from_double(value));
      case DType::i32:
        return store(position, static_cast<std::int32_t>(value));
      case DType::u8:
        return store(position, static_cast<std::uint8_t>(value));
      case DType::u4:
        return store_bits(position / 2, position % 2 * 4, 15, static_cast<int>(value));
      case DType::bit:
        return store_bits(position / 8, position % 8, 1, static_cast<int>(value));
      default:
        ADD_FAILURE() << "no test writes " << name_of(type_.dtype);
    }
  }
  void store_bits(std::int64_t byte, std::int64_t shift, int mask, int value) {
    store(byte, static_cast<std::uint8_t>((load<std::uint8_t>(byte) & ~(mask << shift)) | (value << shift)));
  }

  Type type_;
  std::vector<std::byte> bytes_;
};

struct RunOptions {
  int threads = 2;
  std::vector<Type> output_types = {};                             // instead of the inferred ones
  std::vector<std::pair<std::size_t, std::size_t>> in_place = {};  // output, input whose bytes it takes
};

// The op's outputs by the reference backend. Nothing but them may be written.
inline std::vector<Tensor> run(const OpDef& op, std::vector<Tensor> inputs, const Attributes& attributes = {},
                               const RunOptions& options = {}) {
  std::vector<Type> input_types;
  for (const Tensor& input : inputs) input_types.push_back(input.type());
  std::vector<Type> output_types = options.output_types;
  if (output_types.empty()) output_types = infer_types(op, {input_types, attributes});
  const Backend backend = reference_backend(options.threads);
  Accept accept;
  std::vector<std::string> refusals;
  const KernelQuery query{
      .op = op, .attributes = attributes, .inputs = input_types, .outputs = output_types, .threads = backend.threads};
  const KernelDef* kernel = backend.choose(query, accept, &refusals);
  if (kernel == nullptr) {
    ADD_FAILURE() << op.name << " has no kernel" << (refusals.empty() ? "" : ": " + refusals[0]);
    return {};
  }
  EXPECT_EQ(accept.workspace, Bytes(0));

  const std::vector<Tensor> before = inputs;
  std::vector<Tensor> outputs;
  std::vector<Operand> input_operands, output_operands;
  for (Tensor& input : inputs) input_operands.push_back(input.operand());
  for (const Type& type : output_types) outputs.emplace_back(type);
  for (Tensor& output : outputs) output_operands.push_back(output.operand());
  for (const auto& [output, input] : options.in_place) output_operands[output].data = inputs[input].data();
  kernel
      ->bind({.attributes = attributes,
              .inputs = input_operands,
              .outputs = output_operands,
              .workspace = {},
              .threads = backend.threads})
      ->run();

  std::vector<bool> overwritten(inputs.size());
  for (const auto& [output, input] : options.in_place) {
    std::memcpy(outputs[output].data(), inputs[input].data(), outputs[output].size());
    overwritten[input] = true;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(inputs[i].guards_intact()) << op.name << " wrote outside of input " << i;
    EXPECT_TRUE(overwritten[i] || inputs[i].same_bytes(before[i])) << op.name << " changed input " << i;
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    EXPECT_TRUE(outputs[o].guards_intact()) << op.name << " wrote outside of output " << o;
  return outputs;
}

// `expected` in logical order and computed in double. An f32 result may only differ by its one rounding: sums are taken in
// double.
inline void expect_close(const Tensor& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.elements(), static_cast<std::int64_t>(expected.size()));
  const double relative = got.type().dtype == DType::f32 ? 0x1p-24 : 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double want = expected[static_cast<std::size_t>(i)];
    ASSERT_NEAR(got[i], want, 1e-12 + (relative + 1e-12) * std::abs(want)) << "element " << i << " of " << to_string(got.type());
  }
}

// What a kernel must not depend on: the dtype, and the layouts of two operands.
struct Variant {
  DType dtype;
  bool first_channels_last, second_channels_last;

  Type first(Shape shape) const { return {.dtype = dtype, .shape = shape, .layout = plain_layout(first_channels_last)}; }
  Type second(Shape shape) const { return {.dtype = dtype, .shape = shape, .layout = plain_layout(second_channels_last)}; }
  Type row(Shape shape) const { return {.dtype = dtype, .shape = shape}; }
};

inline void for_every_variant(const std::function<void(const Variant&)>& body) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const bool first : {false, true}) {
      for (const bool second : {false, true}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + (first ? " channels_last" : " row_major") +
                     (second ? " channels_last" : " row_major"));
        body({dtype, first, second});
      }
    }
  }
}

}  // namespace snug::backends
