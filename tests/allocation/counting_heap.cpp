#include "allocation/counting_heap.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <malloc.h>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

namespace snug::allocation {
HeapUse heap_use() { return {}; }
bool heap_is_counted() { return false; }
void forget_largest() {}
}  // namespace snug::allocation

#else

// The GNU C library's own functions, under the names it keeps for programs that bring their own malloc.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* pointer);
// Where the linker put this program's code.
extern char __executable_start;
extern char etext;
}

namespace {

std::atomic<std::int64_t> own_calls{0};
std::atomic<std::int64_t> library_calls{0};
std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> largest_own{0};

bool is_own(const void* caller) {
  const auto* address = static_cast<const char*>(caller);
  return address >= &__executable_start && address < &etext;
}

void* counted(void* pointer, const void* caller) {
  const bool own = is_own(caller);
  (own ? own_calls : library_calls).fetch_add(1, std::memory_order_relaxed);
  if (pointer == nullptr) return pointer;
  const auto bytes = static_cast<std::int64_t>(malloc_usable_size(pointer));
  live_bytes.fetch_add(bytes, std::memory_order_relaxed);
  std::int64_t largest = largest_own.load(std::memory_order_relaxed);
  while (own && bytes > largest && !largest_own.compare_exchange_weak(largest, bytes, std::memory_order_relaxed)) {
  }
  return pointer;
}

void uncount(void* pointer) {
  if (pointer != nullptr) live_bytes.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(pointer)), std::memory_order_relaxed);
}

void* counted_new(std::size_t size, std::size_t alignment, const void* caller) {
  void* pointer = counted(__libc_memalign(alignment, size), caller);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

#define SNUG_CALLER __builtin_return_address(0)

extern "C" {
void* malloc(std::size_t size) noexcept { return counted(__libc_malloc(size), SNUG_CALLER); }
void* calloc(std::size_t count, std::size_t size) noexcept { return counted(__libc_calloc(count, size), SNUG_CALLER); }
void* realloc(void* pointer, std::size_t size) noexcept {
  uncount(pointer);
  return counted(__libc_realloc(pointer, size), SNUG_CALLER);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return counted(__libc_memalign(alignment, size), SNUG_CALLER);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return counted(__libc_memalign(alignment, size), SNUG_CALLER);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  *result = counted(__libc_memalign(alignment, size), SNUG_CALLER);
  return *result == nullptr ? ENOMEM : 0;
}
void free(void* pointer) noexcept {
  uncount(pointer);
  __libc_free(pointer);
}
}

// The library's own new calls malloc from within libstdc++, which would hide who asked.
void* operator new(std::size_t size) { return counted_new(size, alignof(std::max_align_t), SNUG_CALLER); }
void* operator new[](std::size_t size) { return counted_new(size, alignof(std::max_align_t), SNUG_CALLER); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted_new(size, static_cast<std::size_t>(alignment), SNUG_CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted_new(size, static_cast<std::size_t>(alignment), SNUG_CALLER);
}
void operator delete(void* pointer) noexcept { free(pointer); }
void operator delete[](void* pointer) noexcept { free(pointer); }
void operator delete(void* pointer, std::size_t /*size*/) noexcept { free(pointer); }
void operator delete[](void* pointer, std::size_t /*size*/) noexcept { free(pointer); }
void operator delete(void* pointer, std::align_val_t /*alignment*/) noexcept { free(pointer); }
void operator delete[](void* pointer, std::align_val_t /*alignment*/) noexcept { free(pointer); }
void operator delete(void* pointer, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept { free(pointer); }
void operator delete[](void* pointer, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept { free(pointer); }

namespace snug::allocation {

HeapUse heap_use() {
  return {.own_calls = own_calls, .library_calls = library_calls, .live_bytes = live_bytes, .largest_own = largest_own};
}
bool heap_is_counted() { return true; }
void forget_largest() { largest_own = 0; }

}  // namespace snug::allocation

#endif
