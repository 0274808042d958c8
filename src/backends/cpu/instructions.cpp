#include "backends/cpu/instructions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include "base/error.h"

namespace snug::backends::cpu {

namespace {

constexpr std::uint32_t kTileLeaf = 0x1d;
// Palette 1 as in the processor's manual and as oneDNN's kernels expect it.
constexpr std::uint32_t kTiles = 8;
constexpr std::uint32_t kRows = 16;
constexpr std::uint32_t kRowBytes = 64;

constexpr dnnl::cpu_isa kHighestBelowTiles = dnnl::cpu_isa::avx512_core_bf16;

struct NamedIsa {
  std::string_view name;
  dnnl::cpu_isa isa;
};

// In oneDNN's terms. Those below AMX first.
constexpr std::array<NamedIsa, 8> kNamed{{{"sse41", dnnl::cpu_isa::sse41},
                                          {"avx", dnnl::cpu_isa::avx},
                                          {"avx2", dnnl::cpu_isa::avx2},
                                          {"avx2_vnni", dnnl::cpu_isa::avx2_vnni},
                                          {"avx512_core", dnnl::cpu_isa::avx512_core},
                                          {"avx512_core_vnni", dnnl::cpu_isa::avx512_core_vnni},
                                          {"avx512_core_bf16", dnnl::cpu_isa::avx512_core_bf16},
                                          {"avx512_core_amx", dnnl::cpu_isa::avx512_core_amx}}};

// As oneDNN reads its variable: case-insensitive, and unknown words are no limit.
bool is_below_tiles(std::string value) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* found = std::ranges::find(kNamed, value, &NamedIsa::name);
  return found != kNamed.end() && found->isa != dnnl::cpu_isa::avx512_core_amx;
}

#if defined(__x86_64__)

constexpr std::uint64_t kTileStates = (std::uint64_t{1} << 17U) | (std::uint64_t{1} << 18U);  // XTILECFG, XTILEDATA

// The states that the operating system saves for a process.
__attribute__((target("xsave"))) std::uint64_t saved_states() { return _xgetbv(0); }

// Whether the kernel gives tiles to a process that asks. Only oneDNN asks, since that makes signal frames larger.
bool kernel_gives_tiles() {
  constexpr int kGetSupportedStates = 0x1021;  // ARCH_GET_XCOMP_SUPP, since Linux 5.16
  std::uint64_t supported = 0;
  return syscall(SYS_arch_prctl, kGetSupportedStates, &supported) == 0 && (supported & kTileStates) == kTileStates;
}

#endif

}  // namespace

TileFacts read_tile_facts() {
  TileFacts facts;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  facts.largest_leaf = static_cast<std::uint32_t>(__get_cpuid_max(0, nullptr));
  facts.has_tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 24U)) != 0;
  if (!facts.has_tiles) return facts;
  const bool has_xgetbv = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 27U)) != 0;
  facts.is_enabled = has_xgetbv && (saved_states() & kTileStates) == kTileStates && kernel_gives_tiles();
  // These say nothing about leaves beyond the largest.
  if (__get_cpuid_count(kTileLeaf, 0, &a, &b, &c, &d) != 0) facts.largest_palette = a;
  if (facts.largest_palette >= 1 && __get_cpuid_count(kTileLeaf, 1, &a, &b, &c, &d) != 0) {
    facts.row_bytes = b & 0xffffU;
    facts.tiles = b >> 16U;
    facts.rows = c & 0xffffU;
  }
#endif
  return facts;
}

std::optional<std::string> objection_to_tiles(const TileFacts& facts) {
  if (!facts.has_tiles) return std::nullopt;
  if (facts.largest_leaf < kTileLeaf)
    return fmt::format("CPUID ends at leaf {:#x} and does not describe its tiles", facts.largest_leaf);
  if (facts.largest_palette < 1) return "CPUID describes no tiles";
  if (facts.tiles < kTiles || facts.rows < kRows || facts.row_bytes < kRowBytes)
    return fmt::format("CPUID describes {} tiles of {} rows of {} bytes", facts.tiles, facts.rows, facts.row_bytes);
  if (!facts.is_enabled) return "the operating system does not give out its tiles";
  return std::nullopt;
}

AskedInstructions read_asked_instructions() {
  constexpr std::size_t kLongest = 31;  // oneDNN ignores longer ones
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr) continue;
    if (std::string text = value; !text.empty() && text.size() <= kLongest) return {variable, std::move(text)};
  }
  return {};
}

InstructionLimit limit_instructions(const TileFacts& facts, const AskedInstructions& asked) {
  if (is_below_tiles(asked.value)) return {.reason = fmt::format("{}={}", asked.variable, asked.value)};
  if (const std::optional<std::string> objection = objection_to_tiles(facts))
    return {.isa = kHighestBelowTiles, .reason = "AMX is left out: " + *objection};
  return {};
}

void hold_onednn(const InstructionLimit& limit) {
  if (!limit.isa || dnnl::set_max_cpu_isa(*limit.isa) == dnnl::status::success) return;
  if (dnnl::get_effective_cpu_isa() != dnnl::cpu_isa::avx512_core_amx) return;  // already limited by other code
  throw_user_error(
      "this program used oneDNN before Snug, and oneDNN computes with AMX, which ends in an illegal instruction here ({}); set "
      "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, or use Snug first",
      limit.reason);
}

const InstructionLimit& held_instructions() {
  static const InstructionLimit held = [] {
    InstructionLimit limit = limit_instructions(read_tile_facts(), read_asked_instructions());
    hold_onednn(limit);
    return limit;
  }();
  return held;
}

dnnl::cpu_isa effective_instructions() {
  held_instructions();
  return dnnl::get_effective_cpu_isa();
}

std::string name_of(dnnl::cpu_isa isa) {
  const auto* found = std::ranges::find(kNamed, isa, &NamedIsa::isa);
  return found != kNamed.end() ? std::string(found->name) : fmt::format("instruction set {:#x}", static_cast<unsigned>(isa));
}

}  // namespace snug::backends::cpu
