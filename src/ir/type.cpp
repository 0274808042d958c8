#include "ir/type.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace snug {

namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int bits;
};

constexpr std::array<DTypeInfo, 8> kDTypes{{{DType::f64, "f64", 64},
                                            {DType::f32, "f32", 32},
                                            {DType::f16, "f16", 16},
                                            {DType::bf16, "bf16", 16},
                                            {DType::i32, "i32", 32},
                                            {DType::u8, "u8", 8},
                                            {DType::u4, "u4", 4},
                                            {DType::bit, "bit", 1}}};

const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

int bits_per_element(DType dtype) { return info(dtype).bits; }

bool is_floating(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

std::string_view name_of(DType dtype) { return info(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& candidate : kDTypes) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

Shape::Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  if (rank_ > kMaxRank) throw_user_error("a shape of {} dimensions is not supported; use at most {}", rank_, kMaxRank);
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < rank_; ++i) {
    if (dims[i] < 1) throw_user_error("dimension {} of a shape is {}; every dimension must be at least 1", i, dims[i]);
    if (dims[i] > kMaxElements / elements) throw_user_error("shape [{}] has more than 2^48 elements", fmt::join(dims, "x"));
    elements *= dims[i];
    dims_[i] = dims[i];
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) product *= dim;
  return product;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), "x")); }

Bytes Type::bytes() const {
  if (layout.kind == Layout::Kind::opaque) return layout.opaque_bytes;
  return Bytes((elements() * bits_per_element(dtype) + 7) / 8);
}

std::string to_string(const Type& type) {
  std::string text = fmt::format("{}{}", name_of(type.dtype), to_string(type.shape));
  if (type.layout.kind == Layout::Kind::channels_last) text += "/channels_last";
  if (type.layout.kind == Layout::Kind::opaque) {
    text += fmt::format("/opaque({},{})", type.layout.opaque_name, type.layout.opaque_bytes.count());
  }
  return text;
}

std::array<std::int64_t, Shape::kMaxRank> strides_of(const Type& type) {
  SNUG_CHECK(type.layout.kind != Layout::Kind::opaque, "{} has no plain strides", to_string(type));
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  const std::size_t rank = type.shape.rank();
  std::int64_t stride = 1;
  const bool channels_last = type.layout.kind == Layout::Kind::channels_last && rank > 2;
  if (channels_last) {
    strides[1] = 1;
    stride = type.shape[1];
  }
  for (std::size_t i = rank; i-- > 0;) {
    if (channels_last && i == 1) continue;
    strides[i] = stride;
    stride *= type.shape[i];
  }
  return strides;
}

}  // namespace snug
