// What every oneDNN kernel needs: the engine, descriptors of our types, and a chain of primitives as a bound kernel.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "backends/omp_threads.h"
#include "ir/kernel.h"

namespace snug::backends::cpu {

const dnnl::engine& engine();
const dnnl::stream& stream();  // the calling thread's

// Scratchpads lie in the workspace; oneDNN never allocates them.
dnnl::primitive_attr booked_scratchpad();

// The descriptor of a value in its layout, f32 or bf16 (also for f16, which oneDNN cannot compute with but which is as wide);
// weights of grouped convolutions have the groups as a separate dimension.
dnnl::memory::desc descriptor(const Type& type, std::int64_t groups = 1);

// Our name for a layout that oneDNN chose; nothing for plain or unknown ones.
std::optional<Layout> named_layout(const dnnl::memory::desc& descriptor);

// Why a value cannot be passed to oneDNN; nothing when it can.
std::optional<std::string> objection(const Type& type);

// Of a dtype that oneDNN computes with, or moves.
dnnl::memory::data_type data_type_of(DType dtype);

Bytes size_of(const dnnl::memory::desc& descriptor);

// Whether oneDNN computes it by optimized direct loops: not by a general matrix product, which takes scratch and more time than a
// copy of the weights, and not by its reference.
bool is_direct(const dnnl::primitive_desc_base& description);
// Whether oneDNN has only its plain scalar loops for it.
bool is_reference(const dnnl::primitive_desc_base& description);

// Cuts a workspace into aligned pieces, and counts what a workspace must hold.
class WorkspaceCutter {
 public:
  explicit WorkspaceCutter(std::byte* begin = nullptr) : begin_(begin) {}
  std::byte* cut(Bytes size) {
    std::byte* piece = begin_ == nullptr ? nullptr : begin_ + used_.count();
    used_ += round_up(size, kAlignment);
    return piece;
  }
  Bytes used() const { return used_; }

 private:
  std::byte* begin_;
  Bytes used_;
};

// Primitives that run one after the other, with memory objects and argument lists made once.
class PrimitiveChain : public BoundKernel {
 public:
  void add(const dnnl::primitive& primitive, const std::vector<std::pair<int, dnnl::memory>>& arguments);
  // A copy into another layout; with `add_to_target` the target's old contents are added, rounded as in a separate addition.
  void add_reorder(const dnnl::memory& from, const dnnl::memory& to, bool add_to_target = false);
  void add_action(std::unique_ptr<BoundKernel> action);
  void run() override;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    std::unique_ptr<BoundKernel> action;  // instead of a primitive
  };
  std::vector<Step> steps_;
  std::vector<dnnl::memory> memories_;  // what the arguments point to
};

inline dnnl::memory memory_at(const dnnl::memory::desc& descriptor, void* data) { return {descriptor, engine(), data}; }

// An f16 or bf16 value as floats, in the same layout.
Type as_floats(Type type);

// For snapshots and weights, which are read and written in logical order (Backend::read_opaque). Not oneDNN's reorder, which
// would need the whole value in both layouts, and might change 16-bit numbers.
void read_opaque(const Type& type, const std::byte* stored, std::int64_t first, std::span<std::byte> logical);
void write_opaque(const Type& type, std::byte* stored, std::int64_t first, std::span<const std::byte> logical);

}  // namespace snug::backends::cpu
