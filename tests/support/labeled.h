// Images or features with one label each, on which most tests train, as the named inputs that a session takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "train/session.h"

namespace snug::support {

class Labeled {
 public:
  Labeled(std::span<const std::byte> images, std::span<const std::int32_t> labels, std::string_view name = "images")
      : inputs_{data::NamedBytes{.name = name, .bytes = images}, {.name = "labels", .bytes = std::as_bytes(labels)}},
        count_(labels.size()) {}

  // Valid as long as this object.
  operator train::Examples() const { return {.inputs = inputs_, .count = count_}; }  // NOLINT(google-explicit-constructor)

 private:
  std::array<data::NamedBytes, 2> inputs_;
  std::size_t count_;
};

}  // namespace snug::support
