// What is in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string_view>

namespace snug::data {

enum class EntryKind : std::uint8_t { folder, file, other };

// Calls `take` for every entry whose name does not begin with a dot, in whatever order the system has them. Links are followed.
void for_each_entry(const std::filesystem::path& folder, const std::function<void(std::string_view name, EntryKind kind)>& take);

// Whether the name ends in a dot and one of the endings, which are in lower case, in either case.
bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings);

}  // namespace snug::data
