// Throwing the three kinds of failure of <snug/error.h>.
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

#include <snug/error.h>

namespace snug {

template <typename... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
}  // namespace detail

}  // namespace snug

// Checks an invariant of Snug itself, in every build. The message is only formatted when the check fails.
#define SNUG_CHECK(condition, ...)                                                            \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::snug::detail::check_failed(#condition, __FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
