#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// image_input(images u8 [N,C,H,W], scalars) {mean, std: [C], in units of 0..255; augment; padding; bits: 16|32|64; bfloat: 1?} ->
// normalized images; 16 bits are halves or, with bfloat=1, bfloats. With augment=1 each image is flipped with probability 1/2 and
// cropped after zero padding (zero after normalization), keyed by (seed, step, example): the same on every device and for every
// split of the batch, and recomputable from the bytes.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  const Type& images = call.inputs[0];
  require_rank(images, 4, "the images");
  if (images.dtype != DType::u8) throw_user_error("the images are {}; they must be u8", name_of(images.dtype));
  require_scalars(call.inputs[1]);
  const auto channels = static_cast<std::size_t>(images.shape[1]);
  const auto& std = call.attributes.reals("std");
  if (call.attributes.reals("mean").size() != channels || std.size() != channels) {
    throw_user_error("mean and std need one number for each of the {} channels", channels);
  }
  for (const double deviation : std) {
    if (!(deviation > 0)) throw_user_error("std {} is not positive", deviation);
  }
  call.attributes.integer("augment");
  const std::int64_t padding = call.attributes.integer("padding");
  if (padding < 0 || padding > images.shape[2] || padding > images.shape[3])
    throw_user_error("padding {} is larger than the image", padding);
  const std::int64_t bits = call.attributes.integer("bits");
  if (bits != 16 && bits != 32 && bits != 64) throw_user_error("{} bits per value are not possible; use 16, 32 or 64", bits);
  const DType dtype = bits == 64                                     ? DType::f64
                      : bits == 32                                   ? DType::f32
                      : call.attributes.integer_or("bfloat", 0) != 0 ? DType::bf16
                                                                     : DType::f16;
  return {{.dtype = dtype, .shape = images.shape, .layout = images.layout}};
}

void set_result_dtype(Attributes& attributes, DType dtype) {
  attributes.set("bits", std::int64_t{bits_per_element(dtype)});
  attributes.erase("bfloat");
  if (dtype == DType::bf16) attributes.set("bfloat", std::int64_t{1});
}

}  // namespace

constinit const OpDef image_input{.name = "image_input",
                                  .infer = infer,
                                  .flops = flops_per_output_element<2>,
                                  .cheap_to_recompute = true,
                                  .prepares_data = true,
                                  .set_result_dtype = set_result_dtype};

}  // namespace snug::ops
