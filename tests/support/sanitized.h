// Whether a sanitizer watches: its heap keeps what was freed and maps terabytes, so that memory measured from outside says
// nothing.
#pragma once

namespace snug::support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace snug::support
