// Which kernel the backend gives a node. Asking can be slow (a library looks through its implementations), and a network has many
// nodes alike: they are asked about once.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel.h"

namespace snug {

class KernelChoices {
 public:
  explicit KernelChoices(const Backend& backend) : backend_(backend) {}

  struct Choice {
    const KernelDef* kernel = nullptr;  // none: no kernel accepts
    Accept accept = {};
    std::vector<std::string> refusals = {};  // of those asked before
  };
  const Choice& of(const Section& section, const Node& node);

 private:
  const Backend& backend_;
  std::unordered_map<std::string, Choice> known_;
};

}  // namespace snug
