// Whether a sanitizer is active: its heap keeps freed memory and maps terabytes, so that the
// process's memory means nothing.
#pragma once

namespace snug::support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace snug::support
