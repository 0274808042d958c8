// A text inside the program: no download, no file.
#pragma once

#include <memory>
#include <string_view>

#include "data/text/text_source.h"

namespace snug::data {

inline constexpr std::string_view kEmbeddedText = "embedded-text";

// Herman Melville's Moby-Dick (see embedded/NOTICE.md), 1,194,394 bytes.
std::shared_ptr<const TextSource> embedded_text();

}  // namespace snug::data
