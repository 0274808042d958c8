// Recipes: refused with a UserError, or printed as a text that parses to the same recipe.
#include "fuzz_input.h"
#include "settings/recipe.h"
#include <snug/error.h>

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned /*seed*/) {
  static const std::string seed = snug::settings::print_recipe({.model = "wrn-28-2",
                                                                .microbatch = 10,
                                                                .budget_bytes = snug::Bytes(24'000'000),
                                                                .steps = 100,
                                                                .freeze = {"conv1"},
                                                                .init = "w",
                                                                .init_prefix = "p.",
                                                                .init_partial = true,
                                                                .schedule = {.kind = "step", .milestones = {60, 120.5}}});
  return snug::fuzz::mutate_from(seed, data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  snug::settings::Recipe recipe;
  try {
    recipe = snug::settings::parse_recipe(snug::fuzz::text_of(data, size));
  } catch (const snug::UserError&) {
    return 0;
  }
  // Whatever was accepted must be printable; an exception here is a finding.
  if (snug::settings::parse_recipe(snug::settings::print_recipe(recipe)) != recipe) std::abort();
  return 0;
}
