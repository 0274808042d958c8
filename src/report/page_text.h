// The page without its data, as CMake assembles it from src/report/page.
#pragma once

#include <span>
#include <string_view>

namespace snug::report {

extern const std::string_view kPageBeforeData;
extern const std::span<const std::string_view> kPageAfterData;  // one piece after the other

}  // namespace snug::report
