// Weights of 16 bits as floats in a layout of oneDNN's that pads channels: what pads is zero, whatever lies behind the weight.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/half/conv2d.h"
#include "backends/reference/support.h"

namespace snug::backends::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

std::vector<float> widened(Tensor& weight, std::int64_t groups, const dnnl::memory::desc& layout) {
  std::vector<float> target(static_cast<std::size_t>(size_of(layout).count() / 4), -1.0F);
  widen_weights(weight.operand(), groups, 0, layout, target.data(), 2)(0);
  return target;
}

class HalfWeights : public testing::TestWithParam<DType> {
 protected:
  // Of a weight whose channels lie next to each other in both layouts.
  static void expect_padding_of_zeros(Tensor& weight, std::int64_t groups, const dnnl::memory::desc& layout) {
    const std::vector<float> got = widened(weight, groups, layout);
    ASSERT_GT(static_cast<std::int64_t>(got.size()), weight.elements()) << "the layout pads nothing";
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      ASSERT_EQ(got[i], number < weight.elements() ? weight[number] : 0.0) << i;
    }
  }
};

TEST_P(HalfWeights, OneByOneDepthwisePadsWithZeros) {
  Tensor weight = Tensor::random({.dtype = GetParam(), .shape = {24, 1, 1, 1}}, 1);
  expect_padding_of_zeros(weight, 24, {{24, 1, 1, 1, 1}, dnnl::memory::data_type::f32, Tag::Abcde16a});
}

TEST_P(HalfWeights, OneInputChannelPadsWithZeros) {
  Tensor weight = Tensor::random({.dtype = GetParam(), .shape = {24, 1, 1, 1}}, 2);
  expect_padding_of_zeros(weight, 1, {{24, 1, 1, 1}, dnnl::memory::data_type::f32, Tag::Acdb16a});
}

// Nothing pads here, or the source pads as the target does: the weights are widened as they lie.
TEST_P(HalfWeights, WhatLiesAlikeKeepsItsPlaces) {
  Tensor weight = Tensor::random({.dtype = GetParam(), .shape = {32, 1, 1, 1}}, 3);
  const std::vector<float> got = widened(weight, 32, {{32, 1, 1, 1, 1}, dnnl::memory::data_type::f32, Tag::Abcde16a});
  ASSERT_EQ(got.size(), 32U);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], weight[static_cast<std::int64_t>(i)]);
}

INSTANTIATE_TEST_SUITE_P(Stored, HalfWeights, testing::Values(DType::bf16, DType::f16),
                         [](const auto& stored) { return std::string(name_of(stored.param)); });

}  // namespace
}  // namespace snug::backends::cpu
