#include "runtime/executor.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/pieces.h"
#include "runtime/memory_checker.h"

namespace snug {

namespace {

// Where the transient region of an arena begins: at its end where there is none, since then the last state is not padded.
Bytes begin_of_transient(const Plan& plan, MemorySpace space) {
  return std::min(plan.in(space).persistent_bytes, plan.in(space).planned_peak_bytes);
}

}  // namespace

Executor::Executor(const Plan& plan, const Backend& backend)
    : plan_(plan), device_(backend.device), scalars_(plan.program.scalars), metrics_(plan.program.metrics) {
  SNUG_CHECK(device_ != nullptr, "the {} backend is for planning only", backend.name);
  arenas_.emplace(plan, *device_);
  clear_states();
  for (std::size_t i = 0; i < plan.program.sections.size(); ++i) sections_.push_back(bind(i, backend));
  node_seconds_.resize(plan.program.sections.size());
  if (plan.red_zone > Bytes(0)) checker_ = std::make_unique<MemoryChecker>(plan, *arenas_);
}

Executor::~Executor() = default;

// Staging and scalars are read before a section writes them, and nothing writes the padding of layouts.
void Executor::clear_states() {
  const std::vector<std::byte> zeros(kPieceBytes);
  for (std::size_t i = 0; i < plan_.program.states.size(); ++i) {
    for_each_piece(static_cast<std::size_t>(plan_.program.states[i].type.bytes().count()), zeros.size(),
                   [&](std::size_t begin, std::size_t size) {
                     arenas_->in(plan_.program.states[i].space)
                         .write(plan_.state_offsets[i] + Bytes(static_cast<std::int64_t>(begin)), std::span(zeros).first(size));
                   });
  }
}

std::optional<DriverMemory> Executor::driver_memory_beside_arena() const {
  std::optional<DriverMemory> memory = device_->driver_memory();
  if (memory) memory->bytes = memory->bytes - arenas_->in(MemorySpace::device).size();
  return memory;
}

std::unique_ptr<SectionRunner> Executor::bind(std::size_t index, const Backend& backend) const {
  const Section& section = plan_.program.sections[index];
  const auto operand = [&](ValueId id) {
    const Value& value = section.value(id);
    return Operand{.type = value.type, .data = arenas_->address(value.space, plan_.offset_of(index, id))};
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

std::size_t Executor::index_of(SectionId id) const {
  const auto& sections = plan_.program.sections;
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& s) { return s.id() == id; });
  SNUG_CHECK(found != sections.end(), "the program has no section '{}'", to_string(id));
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

void Executor::run(SectionId id) {
  const std::size_t index = index_of(id);
  if (measuring_) start_canary();
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
  if (measuring_) follow_peaks(index);
}

void Executor::start_canary() {
  for (const MemorySpace space : kMemorySpaces) {
    if (arenas_->has(space)) arenas_->in(space).fill_from(begin_of_transient(plan_, space), canary_);
  }
}

void Executor::follow_peaks(std::size_t index) {
  for (const MemorySpace space : kMemorySpaces) {
    if (!arenas_->has(space)) continue;
    const Bytes begin = begin_of_transient(plan_, space);
    const Bytes mark = arenas_->in(space).high_water_mark(begin, canary_);
    Bytes& measured = measured_[static_cast<std::size_t>(space)];
    if (mark > begin) measured = std::max(measured, mark);
  }
  Bytes& on_device = measured_[static_cast<std::size_t>(MemorySpace::device)];
  on_device = std::max(on_device, end_of_workspaces(index));
  canary_ = canary_ == Arena::Canary::plain ? Arena::Canary::inverted : Arena::Canary::plain;
}

// A library need not write the last byte of the scratch that it asked for, but those bytes count as used.
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
  arenas_->in(plan_.program.state(id).space).write(plan_.state_offsets[id.index()], source);
}

void Executor::read(StateId id, Bytes from, std::span<std::byte> target) const {
  const State& state = plan_.program.state(id);
  SNUG_CHECK(from + Bytes(static_cast<std::int64_t>(target.size())) <= state.type.bytes(), "state '{}' has fewer than {} bytes",
             state.name, from.count() + static_cast<std::int64_t>(target.size()));
  arenas_->in(state.space).read(plan_.state_offsets[id.index()] + from, target);
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
  measured_ = {};
  for (std::size_t i = 0; i < plan_.program.states.size(); ++i) {
    const State& state = plan_.program.states[i];
    Bytes& measured = measured_[static_cast<std::size_t>(state.space)];
    measured = std::max(measured, plan_.state_offsets[i] + state.type.bytes());
  }
}

}  // namespace snug
