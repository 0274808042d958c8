// How parameters are moved by their gradients. A rule is one file of this folder: the op that moves one parameter, the states
// that it keeps beside it, its settings. passes/add_update makes the update section from it; nothing else knows which rules there
// are.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace snug::ops {

// What one parameter's update is made of.
struct ParameterUpdate {
  struct Kept {
    std::string purpose;  // "momentum"
    std::string suffix;   // of the state's name, behind the parameter's and a point
    Type type;            // it begins at zero
  };
  const OpDef* op = nullptr;
  std::vector<Kept> states;
  Attributes attributes;  // of the op
};

struct UpdateRule {
  std::string_view name;
  // Every setting with its default.
  Attributes (*defaults)() = nullptr;
  // UserError about settings that are not possible, or do not go together.
  void (*check)(const Attributes& settings) = nullptr;
  ParameterUpdate (*update_of)(const Type& parameter, const Attributes& settings) = nullptr;
  bool rounds_stochastically = false;  // its op knows the attributes `stochastic` and `key`
};

extern const UpdateRule sgd_rule;
extern const UpdateRule adamw_rule;

// UserError, with the names that there are, when there is no such rule.
const UpdateRule& find_update_rule(std::string_view name);

// Parameters whose names match take these settings instead of the rule's. Of several groups the first that matches counts.
struct ParameterGroup {
  std::string pattern;  // * stands for any characters: "*.bias"
  Attributes settings = {};
};
bool matches(const ParameterGroup& group, std::string_view name);

// Everything that a training run asks of its updates.
struct UpdateOptions {
  std::string rule = "sgd";
  Attributes settings = {};  // of the rule; what is not said has its default
  std::vector<ParameterGroup> groups = {};
  // Above 0: all gradients together are cut down to a length. The number itself is data (Scalars::clip_norm); here it only says
  // that the program clips.
  double clip_norm = 0;
  // The update finds out whether all gradients are finite, and skips by itself where one is not: for a loss scale that follows
  // the gradients.
  bool finds_overflow = false;
  // Parameters and optimizer states of 16 bits are rounded stochastically after each update, the nearer number the likelier, not
  // to nearest.
  bool stochastic_rounding = false;

  bool looks_at_all_gradients() const { return clip_norm > 0 || finds_overflow; }
};

// The settings of `sgd` by name.
struct SgdSettings {
  double momentum = 0.9;
  double weight_decay = 5e-4;
  bool nesterov = true;
  // 8: momentum is kept in 8 bits per element (ops/updates/sgd_quantized.cpp), but for small parameters; 32: as the parameter.
  int momentum_bits = 32;
};
Attributes sgd_settings(const SgdSettings& settings);

}  // namespace snug::ops
