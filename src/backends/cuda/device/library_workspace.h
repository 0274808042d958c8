// Scratch for NVIDIA's libraries. On Hopper cuBLASLt refuses a workspace that does not begin at a multiple of 256 bytes, and the
// plan aligns values to 64: so more is planned, and the bytes before the boundary stay unused.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace snug::backends::cuda {

inline constexpr Bytes kLibraryAlignment{256};

// The workspace to plan for a library that wants `wanted`.
inline Bytes library_workspace(Bytes wanted) { return wanted == Bytes(0) ? wanted : wanted + (kLibraryAlignment - kAlignment); }

// The part of a planned workspace that a library gets.
inline std::span<std::byte> on_library_boundary(std::span<std::byte> workspace) {
  const auto misplaced =
      reinterpret_cast<std::uintptr_t>(workspace.data()) % static_cast<std::uintptr_t>(kLibraryAlignment.count());
  if (workspace.empty() || misplaced == 0) return workspace;
  return workspace.subspan(static_cast<std::size_t>(kLibraryAlignment.count()) - misplaced);
}

}  // namespace snug::backends::cuda
