// A batch of 16-bit images, divided among threads: each has its own images, of which one group at a time is converted to floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <vector>

#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {

// How much workspace a call takes: enough to be fast; one image per thread, and a quarter of the weight's channels at a time; or
// one image on one thread, and 16 channels at a time.
enum class HalfRoom : std::uint8_t { fast, small, least };

struct HalfBatch {
  std::int64_t batch;
  int parts;           // threads that have images
  std::int64_t group;  // images at a time

  // A weight's gradient that is larger than all images of a thread needs a second buffer where these come in several groups.
  HalfBatch(std::int64_t images, HalfRoom room, int threads, std::int64_t floats_an_image, std::int64_t floats_of_gradient);

  Range of_part(int part) const { return part_of(batch, part, parts); }
  // All sizes that occur in some thread.
  std::vector<std::int64_t> group_sizes() const;

  // body(first, images) for the groups of a thread.
  template <typename Body>
  void for_each_group_of(int part, const Body& body) const {
    const Range range = of_part(part);
    for (std::int64_t first = range.begin; first < range.end; first += group) body(first, std::min(group, range.end - first));
  }
  // body(part, first, images) for all groups, the parts at the same time. oneDNN's loops within stay on the part's thread.
  template <typename Body>
  void for_each_group(const Body& body) const {
    std::exception_ptr failure;
    const int count = parts;
#pragma omp parallel for schedule(static, 1) num_threads(count)
    for (int part = 0; part < count; ++part) {
      const OmpThreads alone(1);
      try {
        for_each_group_of(part, [&](std::int64_t first, std::int64_t images) { body(part, first, images); });
      } catch (...) {  // none may leave a parallel loop
#pragma omp critical(snug_half_batch)
        failure = std::current_exception();
      }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
  }
};

// The primitives that convolve a group, by its size.
using GroupChains = std::map<std::int64_t, PrimitiveChain>;

// Helpers of the classes in conv2d.h.
Type with_dim(Type type, std::size_t dim, std::int64_t size);
inline std::int64_t image_elements(const Type& type) { return type.elements() / type.shape[0]; }
inline float* floats_of(std::byte* data) { return reinterpret_cast<float*>(data); }

}  // namespace snug::backends::cpu
