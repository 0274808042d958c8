#include "backends/cpu/onednn/onednn.h"

#include <array>
#include <cstring>

#include "backends/cpu/instructions.h"
#include "backends/cpu/layout_map.h"
#include "base/error.h"

namespace snug::backends::cpu {

namespace {

using Tag = dnnl::memory::format_tag;

struct NamedTag {
  std::string_view name;
  Tag tag;
};

// The blocked weight layouts of oneDNN's direct convolutions that states may be kept in.
constexpr std::array<NamedTag, 9> kNamedTags{{{"ABcd16b16a", Tag::ABcd16b16a},
                                              {"Acdb16a", Tag::Acdb16a},
                                              {"ABcd8b8a", Tag::ABcd8b8a},
                                              {"Acdb8a", Tag::Acdb8a},
                                              {"ABcd16a16b", Tag::ABcd16a16b},
                                              {"BAcd16a16b", Tag::BAcd16a16b},
                                              {"ABcd8a8b", Tag::ABcd8a8b},
                                              {"ABcd8b16a2b", Tag::ABcd8b16a2b},
                                              {"ABcd8a16b2a", Tag::ABcd8a16b2a}}};

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine instance = [] {
    held_instructions();  // the limit must be set before oneDNN's first use
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return instance;
}

const dnnl::stream& stream() {
  thread_local const dnnl::stream instance(engine());
  return instance;
}

dnnl::primitive_attr booked_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::data_type data_type_of(DType dtype) {
  return bits_per_element(dtype) == 16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc descriptor(const Type& type, std::int64_t groups) {
  const dnnl::memory::dims dims(type.shape.dims().begin(), type.shape.dims().end());
  const dnnl::memory::data_type data_type = data_type_of(type.dtype);
  if (type.layout.kind == Layout::Kind::opaque) {
    for (const NamedTag& named : kNamedTags) {
      if (named.name == type.layout.opaque_name) return {dims, data_type, named.tag};
    }
    throw InternalError(fmt::format("oneDNN knows no layout '{}'", type.layout.opaque_name));
  }
  const auto element_strides = strides_of(type);
  dnnl::memory::dims strides(element_strides.begin(), element_strides.begin() + static_cast<std::ptrdiff_t>(dims.size()));
  if (groups == 1) return {dims, data_type, strides};
  dnnl::memory::dims grouped_dims{groups, dims[0] / groups};
  grouped_dims.insert(grouped_dims.end(), dims.begin() + 1, dims.end());
  dnnl::memory::dims grouped_strides{strides[0] * (dims[0] / groups)};
  grouped_strides.insert(grouped_strides.end(), strides.begin(), strides.end());
  return {grouped_dims, data_type, grouped_strides};
}

std::optional<Layout> named_layout(const dnnl::memory::desc& descriptor) {
  for (const NamedTag& named : kNamedTags) {
    if (dnnl::memory::desc(descriptor.dims(), descriptor.data_type(), named.tag) == descriptor) {
      return Layout{.kind = Layout::Kind::opaque, .opaque_name = std::string(named.name), .opaque_bytes = size_of(descriptor)};
    }
  }
  return std::nullopt;
}

std::optional<std::string> objection(const Type& type) {
  if (type.dtype != DType::f32 && type.dtype != DType::bf16) return fmt::format("{} is not f32 or bf16", to_string(type));
  return std::nullopt;
}

namespace {

// "jit:avx2", "brgconv:avx512_core", "gemm:jit", "ref:any", ...
std::string_view implementation_of(const dnnl::primitive_desc_base& description) {
  const char* name = nullptr;
  const dnnl_status_t status =
      dnnl_primitive_desc_query(description.get(), dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
  SNUG_CHECK(status == dnnl_success, "oneDNN does not name an implementation");
  return name;
}

}  // namespace

bool is_direct(const dnnl::primitive_desc_base& description) {
  const std::string_view implementation = implementation_of(description);
  return implementation.starts_with("jit") || implementation.starts_with("brg");
}

bool is_reference(const dnnl::primitive_desc_base& description) {
  const std::string_view implementation = implementation_of(description);
  return implementation.starts_with("ref") || implementation.ends_with(":ref");
}

Bytes size_of(const dnnl::memory::desc& descriptor) { return Bytes(static_cast<std::int64_t>(descriptor.get_size())); }

void PrimitiveChain::add(const dnnl::primitive& primitive, const std::vector<std::pair<int, dnnl::memory>>& arguments) {
  Step step{.primitive = primitive, .arguments = {}, .action = nullptr};
  for (const auto& [argument, memory] : arguments) {
    memories_.push_back(memory);
    step.arguments.push_back({argument, memory.get()});
  }
  steps_.push_back(std::move(step));
}

void PrimitiveChain::add_reorder(const dnnl::memory& from, const dnnl::memory& to, bool add_to_target) {
  dnnl::primitive_attr attributes = booked_scratchpad();
  if (add_to_target) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  const dnnl::reorder::primitive_desc description(from, to, attributes);
  SNUG_CHECK(description.scratchpad_desc().get_size() == 0, "a reorder of weights needs scratch that was not planned");
  add(dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void PrimitiveChain::add_action(std::unique_ptr<BoundKernel> action) {
  steps_.push_back({.primitive = {}, .arguments = {}, .action = std::move(action)});
}

void PrimitiveChain::run() {
  for (const Step& step : steps_) {
    if (step.action != nullptr) {
      step.action->run();
      continue;
    }
    // The C function takes our argument list; the C++ one builds a new one at every call.
    const dnnl_status_t status = dnnl_primitive_execute(step.primitive.get(), stream().get(),
                                                        static_cast<int>(step.arguments.size()), step.arguments.data());
    SNUG_CHECK(status == dnnl_success, "dnnl_primitive_execute failed with status {}", static_cast<int>(status));
  }
}

Type as_floats(Type type) {
  if (type.layout.kind == Layout::Kind::opaque && type.dtype != DType::f32)
    type.layout.opaque_bytes = Bytes(2 * type.layout.opaque_bytes.count());
  type.dtype = DType::f32;
  return type;
}

namespace {

// copy(byte of the value, byte of the stretch) for every element of a stretch of `bytes` bytes in logical order.
template <typename T, typename Copy>
void for_each_place(const Type& type, std::int64_t first, std::size_t bytes, const Copy& copy) {
  const LayoutMap map(type);
  const auto count = static_cast<std::int64_t>(bytes / sizeof(T));
  for_each_element(map, first, first + count, [&](const auto& at, std::int64_t number) {
    copy(map(at) * static_cast<std::int64_t>(sizeof(T)), (number - first) * static_cast<std::int64_t>(sizeof(T)));
  });
}

// Calls f with an integer as wide as an element.
template <typename F>
void with_width(const Type& type, const F& f) {
  if (bits_per_element(type.dtype) == 16) return f(std::uint16_t{});
  SNUG_CHECK(bits_per_element(type.dtype) == 32, "{} is in no layout of oneDNN's", to_string(type));
  f(std::uint32_t{});
}

}  // namespace

void read_opaque(const Type& type, const std::byte* stored, std::int64_t first, std::span<std::byte> logical) {
  with_width(type, [&]<typename T>(T /*tag*/) {
    for_each_place<T>(type, first, logical.size(),
                      [&](std::int64_t from, std::int64_t to) { std::memcpy(logical.data() + to, stored + from, sizeof(T)); });
  });
}

void write_opaque(const Type& type, std::byte* stored, std::int64_t first, std::span<const std::byte> logical) {
  with_width(type, [&]<typename T>(T /*tag*/) {
    for_each_place<T>(type, first, logical.size(),
                      [&](std::int64_t to, std::int64_t from) { std::memcpy(stored + to, logical.data() + from, sizeof(T)); });
  });
}

}  // namespace snug::backends::cpu
