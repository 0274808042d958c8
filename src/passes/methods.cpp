#include "passes/methods.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace snug {

namespace {

constexpr std::array kPrecisions{std::pair(std::string_view("fp32"), DType::f32), std::pair(std::string_view("fp16"), DType::f16),
                                 std::pair(std::string_view("bf16"), DType::bf16)};

// Every method by its name in plan files.
template <typename M, typename Visitor>
void for_each_method(M& methods, const Visitor& visit) {
  visit("precision", methods.precision);
  visit("nonzero", methods.nonzero);
  visit("momentum_bits", methods.momentum_bits);
  visit("moment_bits", methods.moment_bits);
  visit("microbatch", methods.microbatch);
  visit("statistics_group", methods.statistics_group);
  visit("checkpoint", methods.checkpoint);
  visit("compress", methods.compress_bits);
  visit("offload", methods.offload);
  visit("drop_gradients", methods.drop_gradients);
  visit("fuse_update", methods.fuse_update);
  visit("prepack_weights", methods.prepack_weights);
  visit("workspace_limit", methods.workspace_limit);
}

std::string text_of(DType precision) { return std::string(precision_name(precision)); }
std::string text_of(const CheckpointStrategy& strategy) { return to_string(strategy); }
std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(Bytes size) { return fmt::format("{}", size.count()); }
std::string text_of(std::int64_t count) { return fmt::format("{}", count); }
std::string text_of(double number) { return fmt::format("{}", number); }

// False when the text is not a value of that type.
template <typename T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}
bool read(std::string_view text, DType& precision) {
  const auto found = parse_precision(text);
  if (found) precision = *found;
  return found.has_value();
}
bool read(std::string_view text, CheckpointStrategy& strategy) {
  strategy = parse_checkpoint_strategy(text);
  return true;
}
bool read(std::string_view text, bool& value) {
  value = text == "yes";
  return value || text == "no";
}
bool read(std::string_view text, Bytes& size) {
  std::int64_t count = 0;
  if (!read_number(text, count)) return false;
  size = Bytes(count);
  return true;
}
bool read(std::string_view text, std::int64_t& count) { return read_number(text, count); }
bool read(std::string_view text, double& share) { return read_number(text, share) && share > 0 && share <= 1; }

}  // namespace

Methods normalized(Methods methods) {
  if (methods.nonzero == 1) methods.nonzero.reset();
  if (methods.momentum_bits == 32) methods.momentum_bits.reset();
  for (std::optional<bool> Methods::*asked : {&Methods::offload, &Methods::drop_gradients, &Methods::prepack_weights}) {
    if (methods.*asked == false) (methods.*asked).reset();
  }
  return methods;
}

std::string_view precision_name(DType type) {
  const auto* const found = std::ranges::find(kPrecisions, type, &std::pair<std::string_view, DType>::second);
  SNUG_CHECK(found != kPrecisions.end(), "{} is not a precision", name_of(type));
  return found->first;
}

std::optional<DType> parse_precision(std::string_view name) {
  const auto* const found = std::ranges::find(kPrecisions, name, &std::pair<std::string_view, DType>::first);
  return found == kPrecisions.end() ? std::nullopt : std::optional(found->second);
}

std::string print_methods(const Methods& methods) {
  std::string text;
  for_each_method(methods, [&](std::string_view name, const auto& value) {
    if (value) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, text_of(*value));
  });
  return text;
}

Methods parse_methods(std::string_view text) {
  Methods methods;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t equals = word.find('=');
    bool is_read = false;
    for_each_method(methods, [&](std::string_view name, auto& value) {
      if (equals == std::string_view::npos || word.substr(0, equals) != name || value) return;
      is_read = read(word.substr(equals + 1), value.emplace());
    });
    if (!is_read) throw_user_error("'{}' is not a memory method with its value", word.substr(0, 60));
  }
  return methods;
}

}  // namespace snug
