// Runs a plan: binds every node's kernel to the plan's addresses, then walks the list. It knows nothing about memory methods.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/device.h"
#include "ir/kernel.h"
#include "ir/scalars.h"
#include "plan/plan.h"
#include "runtime/arenas.h"

namespace snug {

class MemoryChecker;

class Executor {
 public:
  // `plan` and `backend` must outlive the executor. A plan with red zones runs in checking mode: red zones must stay untouched, a
  // value must be unchanged when it is read, and dead values are poisoned.
  Executor(const Plan& plan, const Backend& backend);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs one section; InternalError in checking mode when a node touches bytes that are not its own.
  void run(SectionId id);

  // A state's bytes, or their first part, in the layout of its type.
  void write(StateId id, std::span<const std::byte> source);
  void read(StateId id, std::span<std::byte> target) const { read(id, Bytes(0), target); }
  void read(StateId id, Bytes from, std::span<std::byte> target) const;
  void write_scalars(const Scalars& scalars);
  void write_metrics(const Metrics& metrics);
  Metrics read_metrics() const;

  // From the next run on, each section first fills the transient region of every arena with a canary, and `measured_peak_bytes`
  // follows the highest byte that any run has changed, or that a kernel had as workspace. Run each section twice: the pattern
  // alternates.
  void start_measuring();
  // Sections run at full speed again; what was measured stays.
  void stop_measuring() { measuring_ = false; }
  Bytes measured_peak_bytes(MemorySpace space = MemorySpace::device) const { return measured_[static_cast<std::size_t>(space)]; }

  // From the next run on, sections run node by node, and `node_seconds` says how long each node of a section took in its last
  // run. Each node finishes before the next one starts, so on a GPU the sum is more than a section takes at full speed.
  void start_timing() { timing_ = true; }
  void stop_timing() { timing_ = false; }
  const std::vector<double>& node_seconds(SectionId id) const { return node_seconds_[index_of(id)]; }

  // Runs a single node on the arena's current contents, for callers that step through a section.
  void run_node(SectionId id, std::size_t node) { sections_[index_of(id)]->run_node(node); }

  // InternalError if the plan does not use the space.
  Arena& arena(MemorySpace space = MemorySpace::device) { return arenas_->in(space); }
  // What the driver holds on the device for this process beside the arena; nothing where Device::driver_memory returns nothing.
  std::optional<DriverMemory> driver_memory_beside_arena() const;
  const Plan& plan() const { return plan_; }

 private:
  void clear_states();
  std::unique_ptr<SectionRunner> bind(std::size_t index, const Backend& backend) const;
  void start_canary();
  void follow_peaks(std::size_t index);
  Bytes end_of_workspaces(std::size_t index) const;
  std::size_t index_of(SectionId id) const;
  void run_timed(std::size_t index);

  const Plan& plan_;
  std::shared_ptr<Device> device_;
  std::optional<Arenas> arenas_;
  std::vector<std::unique_ptr<SectionRunner>> sections_;
  std::unique_ptr<MemoryChecker> checker_;  // only in checking mode
  StateId scalars_;
  StateId metrics_;
  bool measuring_ = false;
  Arena::Canary canary_ = Arena::Canary::plain;
  std::array<Bytes, kMemorySpaces.size()> measured_{};
  bool timing_ = false;
  std::vector<std::vector<double>> node_seconds_;  // by section and node; empty before its first timed run
};

}  // namespace snug
