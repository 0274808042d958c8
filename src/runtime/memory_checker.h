// Checking mode: detects a node that touches bytes that are not its own, as soon as it does.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "runtime/arenas.h"

namespace snug {

class MemoryChecker {
 public:
  // The plan must have red zones, and its arenas be readable by the host.
  MemoryChecker(const Plan& plan, const Arenas& arenas);

  void begin_section(std::size_t section);
  // InternalError when a value that the node reads was changed since it was written. Then poisons what the node is about to write
  // for the first time, so that an element that it does not write shows as NaN.
  void before_node(std::size_t index);
  // InternalError naming the node and its kernel when it wrote outside its outputs. Then poisons what dies here.
  void after_node(std::size_t index);

 private:
  // A state or a buffer: its bytes, a red zone on either side, and what they held when last written.
  struct Region {
    std::string name;
    std::byte* data;
    std::size_t bytes;
    std::uint64_t checksum = 0;
    bool alive = false;
  };

  Region& region_of(ValueId id);
  void come_alive(Region& region) const;
  void check_red_zones(const Region& region, const std::string& culprit) const;
  std::string describe(std::size_t node) const;

  const Plan& plan_;
  const Arenas& arenas_;
  std::size_t section_ = 0;
  std::vector<Region> states_;
  std::vector<Region> buffers_;  // of the current section
};

}  // namespace snug
