#include "runtime/executor.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/pieces.h"
#include "runtime/memory_checker.h"

namespace snug {

Executor::Executor(const Plan& plan, const Backend& backend)
    : plan_(plan),
      device_(backend.device),
      scalars_(plan.program.find_state("scalars")),
      metrics_(plan.program.find_state("metrics")) {
  SNUG_CHECK(device_ != nullptr, "the {} backend is for planning only", backend.name);
  arena_ = device_->make_arena(plan.planned_peak_bytes);
  clear_states();
  for (std::size_t i = 0; i < plan.program.sections.size(); ++i) sections_.push_back(bind(i, backend));
  node_seconds_.resize(plan.program.sections.size());
  if (plan.red_zone > Bytes(0)) checker_ = std::make_unique<MemoryChecker>(plan, *arena_);
}

Executor::~Executor() = default;

// Staging and scalars are read before a section writes them, and nobody writes what only pads a layout.
void Executor::clear_states() {
  const std::vector<std::byte> zeros(kPieceBytes);
  for (std::size_t i = 0; i < plan_.program.states.size(); ++i) {
    for_each_piece(static_cast<std::size_t>(plan_.program.states[i].type.bytes().count()), zeros.size(),
                   [&](std::size_t begin, std::size_t size) {
                     arena_->write(plan_.state_offsets[i] + Bytes(static_cast<std::int64_t>(begin)),
                                   std::span(zeros).first(size));
                   });
  }
}

std::optional<DriverMemory> Executor::driver_memory_beside_arena() const {
  std::optional<DriverMemory> memory = device_->driver_memory();
  if (memory) memory->bytes = memory->bytes - arena_->size();
  return memory;
}

std::unique_ptr<SectionRunner> Executor::bind(std::size_t index, const Backend& backend) const {
  const Section& section = plan_.program.sections[index];
  const auto operand = [&](ValueId id) {
    return Operand{.type = section.value(id).type, .data = arena_->data() + plan_.offset_of(index, id).count()};
  };
  std::vector<std::unique_ptr<BoundKernel>> kernels;
  for (const Node& node : section.nodes) {
    const KernelDef* kernel = backend.find(node.kernel);
    if (kernel == nullptr)
      throw_user_error("the {} backend has no kernel '{}'; the plan was made for another backend", backend.name, node.kernel);
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
    for (const ValueId id : node.inputs) inputs.push_back(operand(id));
    for (const ValueId id : node.outputs) outputs.push_back(operand(id));
    std::span<std::byte> workspace;
    if (node.workspace.valid()) {
      const Operand scratch = operand(node.workspace);
      workspace = {scratch.data, static_cast<std::size_t>(scratch.type.bytes().count())};
    }
    kernels.push_back(kernel->bind({.attributes = node.attributes,
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .workspace = workspace,
                                    .threads = backend.threads,
                                    .device = device_.get()}));
  }
  return device_->make_runner(std::move(kernels));
}

std::size_t Executor::index_of(SectionKind kind) const {
  const auto& sections = plan_.program.sections;
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& s) { return s.kind == kind; });
  SNUG_CHECK(found != sections.end(), "the program has no section '{}'", name_of(kind));
  return static_cast<std::size_t>(found - sections.begin());
}

void Executor::run_timed(std::size_t index) {
  std::vector<double>& seconds = node_seconds_[index];
  seconds.resize(plan_.program.sections[index].nodes.size());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    sections_[index]->run_node(i);
    seconds[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

void Executor::run(SectionKind kind) {
  const std::size_t index = index_of(kind);
  if (measuring_) arena_->fill_from(plan_.persistent_bytes, canary_);
  if (checker_) {
    checker_->begin_section(index);
    for (std::size_t i = 0; i < plan_.program.sections[index].nodes.size(); ++i) {
      checker_->before_node(i);
      sections_[index]->run_node(i);
      checker_->after_node(i);
    }
  } else if (timing_) {
    run_timed(index);
  } else {
    sections_[index]->run();
  }
  if (measuring_) {
    measured_ = std::max({measured_, arena_->high_water_mark(plan_.persistent_bytes, canary_), end_of_workspaces(index)});
    canary_ = canary_ == Arena::Canary::plain ? Arena::Canary::inverted : Arena::Canary::plain;
  }
}

// A library need not write the last byte of the scratch that it asked for; the bytes were its own all the same.
Bytes Executor::end_of_workspaces(std::size_t index) const {
  const Section& section = plan_.program.sections[index];
  Bytes end;
  for (const Node& node : section.nodes) {
    if (!node.workspace.valid()) continue;
    end = std::max(end, plan_.offset_of(index, node.workspace) + section.value(node.workspace).type.bytes());
  }
  return end;
}

void Executor::write(StateId id, std::span<const std::byte> source) {
  SNUG_CHECK(Bytes(static_cast<std::int64_t>(source.size())) <= plan_.program.state(id).type.bytes(),
             "{} bytes do not fit state '{}'", source.size(), plan_.program.state(id).name);
  arena_->write(plan_.state_offsets[id.index()], source);
}

void Executor::read(StateId id, std::span<std::byte> target) const {
  SNUG_CHECK(Bytes(static_cast<std::int64_t>(target.size())) <= plan_.program.state(id).type.bytes(),
             "state '{}' has fewer than {} bytes", plan_.program.state(id).name, target.size());
  arena_->read(plan_.state_offsets[id.index()], target);
}

void Executor::write_scalars(const Scalars& scalars) {
  SNUG_CHECK(scalars_.valid(), "the program has no scalar block");
  write(scalars_, std::as_bytes(std::span(&scalars, 1)));
}

void Executor::write_metrics(const Metrics& metrics) {
  SNUG_CHECK(metrics_.valid(), "the program has no metrics");
  write(metrics_, std::as_bytes(std::span(&metrics, 1)));
}

Metrics Executor::read_metrics() const {
  SNUG_CHECK(metrics_.valid(), "the program has no metrics");
  Metrics metrics;
  read(metrics_, std::as_writable_bytes(std::span(&metrics, 1)));
  return metrics;
}

void Executor::start_measuring() {
  measuring_ = true;
  // Nothing transient used so far: the persistent region is in use from the start.
  measured_ = Bytes(0);
  for (std::size_t i = 0; i < plan_.program.states.size(); ++i) {
    measured_ = std::max(measured_, plan_.state_offsets[i] + plan_.program.states[i].type.bytes());
  }
}

}  // namespace snug
