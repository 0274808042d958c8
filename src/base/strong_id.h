// Ids that cannot be mixed up: a ValueId is not a NodeId, and neither is a number.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace snug {

template <typename Tag>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  static constexpr StrongId none() { return StrongId(); }
  constexpr bool valid() const { return index_ != kNone; }
  constexpr std::size_t index() const { return index_; }

  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index_ = kNone;
};

}  // namespace snug

template <typename Tag>
struct std::hash<snug::StrongId<Tag>> {
  std::size_t operator()(snug::StrongId<Tag> id) const noexcept { return std::hash<std::size_t>{}(id.index()); }
};
