// The page as CMake puts it together from src/report/page, without its data.
#pragma once

#include <string_view>

namespace snug::report {

extern const std::string_view kPageBeforeData;
extern const std::string_view kPageAfterData;

}  // namespace snug::report
