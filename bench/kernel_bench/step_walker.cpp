#include "kernel_bench/step_walker.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/op.h"

namespace snug::bench {

namespace {

// The first operands that are more than a row of numbers.
std::string shape_of(const Section& section, const Node& node) {
  std::string shape;
  for (const ValueId id : node.inputs) {
    const Value& value = section.value(id);
    if (value.type.shape.rank() < 2 || value.role == Role::scalar) continue;
    shape += fmt::format("{}{}", shape.empty() ? "" : " ", to_string(value.type.shape));
    if (shape.find(' ') != std::string::npos) break;
  }
  if (shape.empty()) shape = to_string(section.value(node.outputs.front()).type.shape);
  return accumulates(node.attributes) ? shape + " + sum" : shape;
}

struct Known {
  std::string key;  // kernel, types and sharing
  const Node* node;
  std::size_t distinct;
};

}  // namespace

StepWalker::StepWalker(train::Session& session, const Backend& backend) : arena_(session.executor().arena().data()) {
  SNUG_CHECK(session.executor().arena().host_accessible(), "kernels are timed one by one on the host only");
  const auto& sections = session.plan().program.sections;
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].kind == kind) bind(i, session, backend);
    }
  }
}

void StepWalker::bind(std::size_t index, const train::Session& session, const Backend& backend) {
  const Plan& plan = session.plan();
  const Section& section = plan.program.sections[index];
  std::vector<Known> known;
  for (const Node& node : section.nodes) {
    std::vector<Operand> inputs, outputs;
    const auto operand = [&](ValueId id) {
      return Operand{.type = section.value(id).type, .data = arena_ + plan.offset_of(index, id).count()};
    };
    for (const ValueId id : node.inputs) inputs.push_back(operand(id));
    for (const ValueId id : node.outputs) outputs.push_back(operand(id));
    std::span<std::byte> workspace;
    if (node.workspace.valid()) {
      const Operand scratch = operand(node.workspace);
      workspace = {scratch.data, static_cast<std::size_t>(scratch.type.bytes().count())};
    }
    Step step{.kernel = backend.find(node.kernel)
                            ->bind({.attributes = node.attributes,
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .workspace = workspace,
                                    .threads = backend.threads,
                                    .device = backend.device.get()}),
              .overwritten = {}};

    std::string key = node.kernel;
    Bytes bytes;
    for (const Operand& input : inputs) {
      const bool overwritten =
          std::any_of(outputs.begin(), outputs.end(), [&](const Operand& o) { return o.data == input.data; });
      if (overwritten) step.overwritten.emplace_back(input.data, static_cast<std::size_t>(input.type.bytes().count()));
      key += fmt::format(" {}{}", to_string(input.type), overwritten ? "!" : "");
      bytes += input.type.bytes();
    }
    // A view in place touches nothing.
    if (node.op->is_view && !step.overwritten.empty()) bytes = Bytes(0);
    for (const Operand& output : outputs) {
      key += fmt::format(" -> {}", to_string(output.type));
      if (!node.op->is_view || step.overwritten.empty()) bytes += output.type.bytes();
    }
    auto entry = std::find_if(known.begin(), known.end(),
                              [&](const Known& k) { return k.key == key && k.node->attributes == node.attributes; });
    if (entry == known.end()) {
      known.push_back({.key = std::move(key), .node = &node, .distinct = distinct_.size()});
      entry = known.end() - 1;
      distinct_.push_back({.kernel = node.kernel,
                           .shape = shape_of(section, node),
                           .first = steps_.size(),
                           .in_micro = section.kind == SectionKind::micro,
                           .gigaflop = node.op->flops == nullptr ? 0 : static_cast<double>(count_flops(section, node)) * 1e-9,
                           .gigabytes = static_cast<double>(bytes.count()) * 1e-9});
    }
    distinct_[entry->distinct].count += 1;
    steps_.push_back(std::move(step));
  }
}

void StepWalker::restore() {
  const auto& overwritten = steps_[at_].overwritten;
  for (std::size_t i = 0; i < overwritten.size(); ++i) std::memcpy(overwritten[i].data(), before_[i].data(), before_[i].size());
}

void StepWalker::go_to(std::size_t node) {
  if (at_ == node && !before_.empty()) return;
  if (ran_) restore();
  if (node < at_) {
    for (; at_ < steps_.size(); ++at_) steps_[at_].kernel->run();
    at_ = 0;
  }
  for (; at_ < node; ++at_) steps_[at_].kernel->run();
  ran_ = false;
  before_.clear();
  for (const auto& bytes : steps_[at_].overwritten) before_.emplace_back(bytes.begin(), bytes.end());
}

double StepWalker::run_seconds() {
  if (ran_) restore();
  ran_ = true;
  const auto start = std::chrono::steady_clock::now();
  steps_[at_].kernel->run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace snug::bench
