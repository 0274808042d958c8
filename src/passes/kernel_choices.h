// A backend's choices of kernels, remembered: deep networks ask about the same few dozen nodes over and over, and an answer takes
// a library tens of microseconds.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/kernel.h"

namespace snug {

class KernelChoices {
 public:
  explicit KernelChoices(const Backend& backend) : backend_(backend) {}

  // As Backend::choose.
  const KernelDef* choose(const Section& section, const Node& node, Accept& accept);

 private:
  struct Choice {
    const KernelDef* kernel = nullptr;
    Accept accept;
  };

  const Backend& backend_;
  std::unordered_map<std::string, Choice> known_;  // by cost_key()
};

}  // namespace snug
