// Program and plan texts: refused with a UserError, or sound enough to be printed, verified and placed.
#include "fuzz_input.h"
#include "io/plan_file.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include <snug/error.h>

namespace {

void try_program(std::string_view text) {
  const snug::Program program = snug::parse_program(text, snug::ops::find);
  const std::string printed = snug::print(program);
  if (snug::print(snug::parse_program(printed, snug::ops::find)) != printed) std::abort();
  if (!snug::find_defect(program)) {
    for (const snug::Section& section : program.sections) snug::liveness(section);
  }
}

void try_plan(std::string_view text) {
  const snug::Plan plan = snug::io::parse_plan(text);
  if (snug::find_violation(plan)) std::abort();
  const std::string printed = snug::io::print_plan(plan);
  if (snug::io::print_plan(snug::io::parse_plan(printed)) != printed) std::abort();
}

const std::string& seed() {
  static const std::string text = snug::io::print_plan(snug::fuzz::tiny_plan(snug::backends::reference_backend(1)));
  return text;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned /*seed*/) {
  return snug::fuzz::mutate_from(seed(), data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = snug::fuzz::text_of(data, size);
  try {
    try_program(text.substr(0, text.rfind("\nplacement ")));
  } catch (const snug::UserError&) {
  }
  try {
    try_plan(text);
  } catch (const snug::UserError&) {
  }
  return 0;
}
