// Snapshots with a right checksum, since a wrong one ends everything: refused with a UserError, or loaded whole; the plan inside
// is refused or sound.
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/checksum.h"
#include "fuzz_input.h"
#include "io/plan_file.h"
#include "train/snapshot.h"
#include <snug/error.h>

namespace {

const snug::Backend& backend() {
  static const snug::Backend kBackend = snug::backends::reference_backend(1);
  return kBackend;
}

snug::train::Session& session() {
  static snug::train::Session kSession(snug::fuzz::tiny_plan(backend()), backend(), 1);
  return kSession;
}

const std::string& seed() {
  static const std::string bytes = [] {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / ("snug_seed_" + std::to_string(::getpid()));
    snug::train::save_snapshot(path, session(),
                               {.best_metric = 0.5,
                                .data = snug::data::open_dataset("embedded", {})->description(),
                                .recipe = "model = \"x\"",
                                .extras = {{"a", "b"}}});
    std::ifstream file(path, std::ios::binary);
    std::string result{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(path);
    return result;
  }();
  return bytes;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned /*seed*/) {
  return snug::fuzz::mutate_from(seed(), data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(snug::fuzz::text_of(data, size));
  if (bytes.size() >= 8) {
    snug::Crc64 checksum;
    checksum.update(std::as_bytes(std::span(bytes).first(bytes.size() - 8)));
    const std::uint64_t value = checksum.value();
    std::memcpy(bytes.data() + bytes.size() - 8, &value, 8);
  }
  const snug::fuzz::MemoryFile file(bytes);
  std::optional<snug::train::SnapshotInfo> info;
  try {
    info = snug::train::inspect_snapshot(file.path());
  } catch (const snug::UserError&) {
    return 0;
  }
  try {
    snug::train::load_snapshot(file.path(), session());
  } catch (const snug::UserError&) {
  }
  try {
    const snug::Plan plan = snug::io::parse_plan(info->plan);
    snug::io::check_kernels(plan, backend());
    if (snug::find_violation(plan)) std::abort();
  } catch (const snug::UserError&) {
  }
  return 0;
}
