// Which instructions oneDNN may compute with on this processor.
//
// oneDNN considers AMX usable where the feature bits are set. It then asks CPUID for the shape of the tiles (leaf 0x1d). Some
// virtual machines set the bits but end CPUID before that leaf; oneDNN loads an empty tile configuration and the process dies of
// SIGILL. So oneDNN is limited to instructions below AMX wherever the tiles are not described. Our own kernels use no AMX; each
// checks for the instructions that it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dnnl.hpp>

namespace snug::backends::cpu {

// What the processor and the kernel say about AMX's tiles.
struct TileFacts {
  bool has_tiles = false;             // the feature bit
  bool is_enabled = false;            // the operating system saves them, and lets a process ask for them
  std::uint32_t largest_leaf = 0;     // of CPUID
  std::uint32_t largest_palette = 0;  // leaf 0x1d; 0 where there is no such leaf
  std::uint32_t tiles = 0;            // of palette 1, the only one so far
  std::uint32_t rows = 0;
  std::uint32_t row_bytes = 0;
};
TileFacts read_tile_facts();

// Why a library cannot use the tiles that the processor says it has; nothing where it can, or where there are none.
std::optional<std::string> objection_to_tiles(const TileFacts& facts);

// The limit that the user set by oneDNN's environment variable; empty where it is not set.
struct AskedInstructions {
  std::string variable;  // ONEDNN_MAX_CPU_ISA, which comes first, or DNNL_MAX_CPU_ISA
  std::string value;
};
AskedInstructions read_asked_instructions();

struct InstructionLimit {
  std::optional<dnnl::cpu_isa> isa = {};  // what oneDNN is told; nothing: it follows the variable, if any
  std::string reason;                     // one line; empty: nothing is limited
};

// The lower of what the user asked for and what the tiles allow. A limit set by us overrides the variable, so we set one only
// where it is lower.
InstructionLimit limit_instructions(const TileFacts& facts, const AskedInstructions& asked);

// Sets oneDNN's limit. This works only before its first use: UserError where it was used before and would crash.
void hold_onednn(const InstructionLimit& limit);

// This machine's limit. The first call sets it in oneDNN, so every use of oneDNN must start with this call; engine() does.
const InstructionLimit& held_instructions();

// What oneDNN computes with, after held_instructions().
dnnl::cpu_isa effective_instructions();
std::string name_of(dnnl::cpu_isa isa);

}  // namespace snug::backends::cpu
