// The inner loops of a bf16 weight gradient, for processors that multiply pairs of bf16 numbers (AVX512_BF16). Compiled with
// flags for these processors, so this header and its source include nothing whose code could be linked into other files.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

// Output channels that are processed together: rows of the gradient.
inline constexpr std::int64_t kGradientRows = 8;
// Input channels of one vector; the loops take one or two vectors at a time.
inline constexpr std::int64_t kGradientLanes = 16;

// Some images of dy, and of x, channels last; one place in the kernel's window.
struct GradientImages {
  std::int64_t images;
  std::int64_t out_height, out_width, in_height, in_width, in_channels;
  std::int64_t stride_height, stride_width;
  std::int64_t top, left;  // the input's pixel under the window's place at output 0,0; negative in the padding
};

// Whether the compiler was given the flags; the caller must check whether the processor has the instructions.
bool is_compiled_for_bf16_pairs();

// Packs two neighbors in a row into one word, channel after channel: [images, out_height, pairs, kGradientRows] words. An odd
// row's last pixel has zeros beside it. `pitch` is the number of dy's channels.
void pair_pixels(const std::uint16_t* dy, std::int64_t images, std::int64_t out_height, std::int64_t out_width,
                 std::int64_t pitch, std::uint32_t* pairs);

// Adds to sums[row * sums_pitch + channel] the products of the paired dy with `vectors` (1 or 2) vectors of x's channels, which
// `x` points at in the first pixel.
void add_pair_products(const GradientImages& of, const std::uint32_t* pairs, const std::uint16_t* x, int vectors, float* sums,
                       std::int64_t sums_pitch);

// Rounds kGradientRows rows of kGradientLanes sums each to bf16 and adds them to `before` (null: to nothing) at `to`, in the
// order of half a block of a paired weight (oneDNN's 8b16a2b): pair of columns after pair, `kPairPitch` apart, the rows' pairs
// adjacent. `before` may be `to`.
inline constexpr std::int64_t kPairPitch = 32;
void place_paired_sums(const float* sums, std::int64_t sums_pitch, const std::uint16_t* before, std::uint16_t* to);

}  // namespace snug::backends::cpu
