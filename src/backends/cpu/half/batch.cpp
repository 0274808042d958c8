#include "backends/cpu/half/batch.h"

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kCachedFloats = (std::int64_t{1} << 19U) / 4;  // of images: half of a core's second-level cache, about

// As many images as a thread's cache holds, but those of all threads take at most a quarter of the batch's own bytes.
std::int64_t images_at_a_time(std::int64_t batch, int parts, std::int64_t floats_an_image, std::int64_t floats_of_gradient,
                              HalfRoom room) {
  if (room != HalfRoom::fast) return 1;
  const std::int64_t of_thread = (batch + parts - 1) / parts;
  if (of_thread * floats_an_image <= floats_of_gradient) return of_thread;
  return std::clamp<std::int64_t>(kCachedFloats / floats_an_image, 1,
                                  std::max<std::int64_t>(batch / (std::int64_t{8} * parts), 1));
}

}  // namespace

HalfBatch::HalfBatch(std::int64_t images, HalfRoom room, int threads, std::int64_t floats_an_image,
                     std::int64_t floats_of_gradient)
    : batch(images),
      parts(room == HalfRoom::least ? 1 : static_cast<int>(std::min<std::int64_t>(images, threads))),
      group(images_at_a_time(batch, parts, floats_an_image, floats_of_gradient, room)) {}

std::vector<std::int64_t> HalfBatch::group_sizes() const {
  std::vector<std::int64_t> sizes{group};
  for (int part = 0; part < parts; ++part) {
    for_each_group_of(part, [&](std::int64_t /*first*/, std::int64_t images) {
      if (!std::ranges::count(sizes, images)) sizes.push_back(images);
    });
  }
  return sizes;
}

Type with_dim(Type type, std::size_t dim, std::int64_t size) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  if (type.layout.kind == Layout::Kind::opaque)
    type.layout.opaque_bytes = Bytes(type.layout.opaque_bytes.count() / dims[dim] * size);
  dims[dim] = size;
  type.shape = Shape(std::span<const std::int64_t>(dims));
  return type;
}

}  // namespace snug::backends::cpu
