// Optimizers. A rule is one file of this folder: the op that updates one parameter, the states that
// it keeps beside it, its settings. passes/model/add_update makes the update section from it;
// nothing else knows which rules there are.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace snug::ops {

// What a rule is told of a parameter.
struct UpdatedParameter {
  Type type;
  bool is_vector = false;  // a number for each channel: a bias, or of a normalization
};

// The parts of one parameter's update.
struct ParameterUpdate {
  struct Kept {
    std::string purpose;  // "momentum"
    std::string suffix;   // of the state's name, after the parameter's and a point
    Type type;            // it starts at zero
  };
  const OpDef* op = nullptr;  // it knows the attributes `stochastic` and `key`
  std::vector<Kept> states;
  Attributes attributes;  // of the op
};

struct UpdateRule {
  std::string_view name;
  // Every setting with its default.
  Attributes (*defaults)() = nullptr;
  // UserError about settings that are not possible, alone or together.
  void (*check)(const Attributes& settings) = nullptr;
  ParameterUpdate (*update_of)(const UpdatedParameter& parameter, const Attributes& settings) = nullptr;
};

extern const UpdateRule sgd_rule;
extern const UpdateRule adamw_rule;

// UserError, listing the rules, when there is no such rule.
const UpdateRule& find_update_rule(std::string_view name);

// Parameters whose names match have these settings instead of the rule's. The first group that matches counts.
struct ParameterGroup {
  std::string pattern;  // * stands for any characters: "*.bias"
  Attributes settings = {};
};
bool matches(const ParameterGroup& group, std::string_view name);

// Everything that a training run says about its updates.
struct UpdateOptions {
  std::string rule = "sgd";
  Attributes settings = {};  // of the rule; what is not given has its default
  std::vector<ParameterGroup> groups = {};
  // Above 0: the norm of all gradients together is clipped. The number itself is data (Scalars::clip_norm); here it only says
  // that the program clips.
  double clip_norm = 0;
  // The update checks whether all gradients are finite, and skips itself where one is not: for
  // dynamic loss scaling.
  bool finds_overflow = false;
  // What has 16 bits of parameters and optimizer states is rounded stochastically after each update, not to nearest.
  bool stochastic_rounding = false;

  bool looks_at_all_gradients() const { return clip_norm > 0 || finds_overflow; }
};

// The settings of `sgd` by name.
struct SgdSettings {
  double momentum = 0.9;
  double weight_decay = 5e-4;
  bool nesterov = true;
  // 8: momentum is kept in 8 bits per element (ops/updates/sgd_quantized.cpp), except for small parameters; 32: in the
  // parameter's type.
  int momentum_bits = 32;
};
Attributes sgd_settings(const SgdSettings& settings);

}  // namespace snug::ops
