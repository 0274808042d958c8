// A backend for planning without a device: a kernel for every op that accepts any node and can never run.
//
//   const AcceptingBackend backend({.workspace = {{"conv2d", Bytes(4096)}}, .refuses_accumulation = {"conv2d_grad_weight"}});
//   const Plan plan = compile(graph, backend);
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/kernel.h"
#include "ops/ops.h"

namespace snug::testing {

struct AcceptingOptions {
  std::map<std::string_view, Bytes> workspace = {};      // by op; none for the others
  std::set<std::string_view> refuses_accumulation = {};  // ops whose kernel cannot accumulate
  std::set<std::string_view> refuses = {};               // ops whose kernel refuses everything
  std::set<std::string_view> missing = {};               // ops without a kernel
};

// A kernel's `match` is a plain function, so it finds the options through the only backend that exists.
class AcceptingBackend : public Backend {
 public:
  explicit AcceptingBackend(AcceptingOptions options = {}) : options_(std::move(options)) {
    SNUG_CHECK(alive_ == nullptr, "only one accepting backend at a time");
    alive_ = this;
    name = "accepting";
    kernel_names_.reserve(ops::all().size());
    definitions_.reserve(ops::all().size());
    for (const OpDef* op : ops::all()) {
      if (options_.missing.contains(op->name)) continue;
      kernel_names_.push_back("accepting_" + std::string(op->name));
      definitions_.push_back({.name = kernel_names_.back(),
                              .op = op->name,
                              .match = match,
                              .bind = bind,
                              .takes_host = op->output_space != nullptr});
      kernels.push_back(&definitions_.back());
    }
  }
  ~AcceptingBackend() { alive_ = nullptr; }
  AcceptingBackend(const AcceptingBackend&) = delete;
  AcceptingBackend& operator=(const AcceptingBackend&) = delete;

 private:
  static KernelMatch match(const KernelQuery& query) {
    const AcceptingOptions& options = alive_->options_;
    if (options.refuses.contains(query.op.name)) return Refuse{"told to refuse"};
    if (accumulates(query.attributes) && options.refuses_accumulation.contains(query.op.name))
      return Refuse{"makes only fresh values"};
    const auto workspace = options.workspace.find(query.op.name);
    return Accept{.workspace = workspace == options.workspace.end() ? Bytes(0) : workspace->second};
  }

  static std::unique_ptr<BoundKernel> bind(const KernelArguments& /*arguments*/) {
    throw InternalError("a kernel of the accepting backend cannot run");
  }

  inline static const AcceptingBackend* alive_ = nullptr;

  AcceptingOptions options_;
  std::vector<std::string> kernel_names_;
  std::vector<KernelDef> definitions_;
};

}  // namespace snug::testing
