// What a backend offers for a node. The interface lives with the IR because passes ask it (how much workspace? can it
// accumulate?) long before anything runs, and planning must work without a device.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "ir/device.h"
#include "ir/node_key.h"
#include "ir/op.h"

namespace snug {

// What a kernel is asked about: a node's op, constants and operand types, and how many threads will run it.
struct KernelQuery {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Type> inputs;
  std::span<const Type> outputs;
  int threads = 1;
  Device* device = nullptr;   // the backend's
  bool touches_host = false;  // some operand lies in host memory
};

struct Accept {
  Bytes workspace;                 // scratch the kernel needs while it runs
  std::string_view numerics = "";  // kernels of one class give the same bits; empty: the op's plain definition
  // Time relative to the first choice for the same node. 0: not known, so it is used only under a user's own limit, never by a
  // search.
  double slowdown = 0;
  // Plain scalar loops, ours or a library's: correct for everything, and for products hundreds of times slower than optimized
  // kernels.
  bool is_reference = false;
};
struct Refuse {
  std::string reason;
};
using KernelMatch = std::variant<Accept, Refuse>;

// One operand at its place in the arena.
struct Operand {
  Type type;
  std::byte* data = nullptr;
};

struct KernelArguments {
  const Attributes& attributes;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  std::span<std::byte> workspace;
  int threads = 1;
  Device* device = nullptr;  // the backend's
};

struct KernelDef {
  std::string_view name;  // <library>_<op>
  std::string_view op;
  KernelMatch (*match)(const KernelQuery&) = nullptr;
  std::unique_ptr<BoundKernel> (*bind)(const KernelArguments&) = nullptr;
  bool takes_host = false;  // operands may lie in host memory

  // What `match` says; it is asked only about operands in memory that the kernel takes.
  KernelMatch answer(const KernelQuery& query) const;
};

// A cache of kernels' answers, for compiling the same nodes many times: a library may take longer to say how much workspace it
// needs than all passes together.
class KernelAnswers {
 public:
  struct Answer {
    const KernelDef* kernel;
    KernelMatch match;
  };
  // The answers about a node so far, in the backend's order, and how many kernels were asked.
  struct Entry {
    std::vector<Answer> answers;
    std::size_t looked_at = 0;
  };

  // Calls `use` with what is known about the node; one thread at a time.
  template <typename Use>
  auto look_up(const KernelQuery& query, const Use& use) {
    std::string key = node_key(query.op, query.attributes, query.inputs, query.outputs);
    if (query.touches_host) key += " host";
    const std::scoped_lock lock(mutex_);
    return use(entries_[key]);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

// How fast products of 16-bit numbers are relative to products of floats.
struct ProductSpeeds {
  double bf16 = 1;
  double f16 = 1;

  double of(DType dtype) const { return dtype == DType::bf16 ? bf16 : dtype == DType::f16 ? f16 : 1; }
};

// A backend: its kernels in order of preference, the reference last.
struct Backend {
  std::string_view name;
  std::vector<const KernelDef*> kernels;
  int threads = 1;
  std::shared_ptr<Device> device = nullptr;   // none: for planning only
  std::optional<Bytes> workspace_limit = {};  // kernels that need more are refused
  // What times measured with it depend on: the processor and the libraries, with their versions. Empty: never measured.
  std::string machine = {};
  // The instruction set that its libraries use, and what keeps them from using all that the processor has; empty where this does
  // not apply.
  std::string instructions = {};
  std::string instructions_limit = {};
  // For predicting times where nothing was measured.
  ProductSpeeds product_speeds = {};

  // Only for one search; `choose` looks here before it asks a kernel.
  std::shared_ptr<KernelAnswers> answers = nullptr;

  // The layout in which this backend wants the weight (input 1) of a node, or nothing when any plain one is fine.
  std::optional<Layout> (*preferred_weight_layout)(const KernelQuery& query) = nullptr;
  // Reads and writes a value that lies in host memory in one of this backend's opaque layouts: as many elements as `logical`
  // holds, from element `first` in logical order on. Writing leaves padding as it is. Needed only where layouts are opaque.
  void (*read_opaque)(const Type& type, const std::byte* stored, std::int64_t first, std::span<std::byte> logical) = nullptr;
  void (*write_opaque)(const Type& type, std::byte* stored, std::int64_t first, std::span<const std::byte> logical) = nullptr;

  // What a kernel would be asked about this node; the types must outlive it.
  KernelQuery query(const Node& node, const NodeTypes& types) const;
  // The first kernel that accepts; nullptr when none does. `refusals` gathers "kernel: reason" of those asked before.
  const KernelDef* choose(const KernelQuery& query, Accept& accept, std::vector<std::string>* refusals = nullptr) const;
  const KernelDef* find(std::string_view kernel_name) const;
  // What a plan's choice of kernels depends on: threads and machine. Where it differs, a new plan should be made.
  std::string made_for() const;

 private:
  const KernelDef* choose_from(KernelAnswers::Entry& known, const KernelQuery& query, Accept& accept,
                               std::vector<std::string>* refusals) const;
};

}  // namespace snug
