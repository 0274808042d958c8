// Dropout, image augmentation and initial values: everything that draws.
#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "ops/random_draws.h"
#include "support.h"

namespace snug::backends {
namespace {

// Runs resume, and other devices follow: these numbers may never change.
TEST(RandomDraws, AreFrozen) {
  EXPECT_EQ(ops::dropout_word(0x0123456789ABCDEF, 42, 7, 1001), 1855475868U);
  const ops::ImageAugmentation augmentation = ops::draw_image_augmentation(5, 9, 123, 4);
  EXPECT_FALSE(augmentation.flip);
  EXPECT_EQ(augmentation.dy, 4);
  EXPECT_EQ(augmentation.dx, 3);
  EXPECT_EQ(ops::draw_init_uniform(1, 2, 3), 0.61710798740386963);
  EXPECT_NEAR(ops::draw_init_normal(1, 2, 3), -1.8460554476962194, 1e-15);
}

TEST(RandomDraws, AugmentationFollowsTheWordsOfItsExample) {
  const PhiloxBlock block = philox(5, 123, 9 | (std::uint64_t{0xFFFFFF} << 40U));
  for (const std::int64_t padding : {0, 1, 4}) {
    const ops::ImageAugmentation augmentation = ops::draw_image_augmentation(5, 9, 123, padding);
    EXPECT_EQ(augmentation.flip, block.word[0] % 2 == 1);
    EXPECT_EQ(augmentation.dy, std::floor(block.word[1] / 4294967296.0 * static_cast<double>(2 * padding + 1)));
    EXPECT_EQ(augmentation.dx, std::floor(block.word[2] / 4294967296.0 * static_cast<double>(2 * padding + 1)));
  }
}

TEST(RandomDraws, PurposesDoNotShareNumbers) {
  // The same seed, key and step everywhere.
  const PhiloxBlock dropout = ops::dropout_block(1, 3, 3, 0);
  const PhiloxBlock initial = philox(1, 0, ops::counter_high(ops::kInitPurpose, 3));
  const PhiloxBlock image = philox(1, 0, ops::counter_high(ops::kImagePurpose, 3));
  EXPECT_NE(dropout.word[0], initial.word[0]);
  EXPECT_NE(dropout.word[0], image.word[0]);
  EXPECT_NE(initial.word[0], image.word[0]);
  EXPECT_EQ(ops::draw_init_uniform(1, 3, 0), (initial.word[0] >> 8U) / 8388608.0 - 1);
}

Attributes dropping(double probability, std::int64_t key) { return {{"probability", probability}, {"key", key}}; }

TEST(ReferenceDropout, KeepsAndScalesWhatThePhiloxWordSays) {
  for_every_variant([](const Variant& variant) {
    const Scalars scalars{.seed = 11, .step = 5, .first_example = 6};
    const Tensor x = Tensor::random(variant.first({2, 3, 3, 5}), 1);
    const Tensor y = run(ops::dropout, {x, Tensor::scalars(scalars)}, dropping(0.3, 9))[0];
    std::vector<double> expected;
    for (std::uint64_t i = 0; i < 90; ++i) {
      const std::uint64_t element = 6 * 45 + i;
      const std::uint32_t word = philox(11, element / 4, 5 + 9 * (std::uint64_t{1} << 40U)).word[element % 4];
      expected.push_back(word / 4294967296.0 >= 0.3 ? x[static_cast<std::int64_t>(i)] / 0.7 : 0);
    }
    expect_close(y, expected);
  });
}

TEST(ReferenceDropout, MaskOfAnExampleDoesNotDependOnItsMicrobatch) {
  for_every_variant([](const Variant& variant) {
    const Tensor ones(variant.first({4, 2, 3, 1}), std::vector<double>(24, 1.0));
    const Tensor one(variant.second({1, 2, 3, 1}), std::vector<double>(6, 1.0));
    const Tensor together = run(ops::dropout, {ones, Tensor::scalars({.seed = 1, .step = 2})}, dropping(0.5, 3))[0];
    for (std::int64_t n = 0; n < 4; ++n) {
      const Scalars scalars{.seed = 1, .step = 2, .first_example = static_cast<std::uint64_t>(n)};
      const Tensor alone = run(ops::dropout, {one, Tensor::scalars(scalars)}, dropping(0.5, 3))[0];
      for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(alone[i], together[n * 6 + i]);
    }
  });
}

TEST(ReferenceDropout, DropsTheGivenShareAndDiffersByStepKeyAndSeed) {
  const Tensor ones({.dtype = DType::f64, .shape = {10, 1000}}, std::vector<double>(10000, 1.0));
  const auto mask = [&](std::uint64_t seed, std::uint64_t step, std::int64_t key) {
    return run(ops::dropout, {ones, Tensor::scalars({.seed = seed, .step = step})}, dropping(0.25, key))[0].logical();
  };
  const std::vector<double> base = mask(1, 1, 1);
  EXPECT_NEAR(static_cast<double>(std::count(base.begin(), base.end(), 0.0)), 2500, 200);
  EXPECT_EQ(mask(1, 1, 1), base);
  EXPECT_NE(mask(2, 1, 1), base);
  EXPECT_NE(mask(1, 2, 1), base);
  EXPECT_NE(mask(1, 1, 2), base);
  const Tensor kept = run(ops::dropout, {ones, Tensor::scalars({})}, dropping(0, 1))[0];
  EXPECT_EQ(kept.logical(), ones.logical());
}

Attributes image_attributes(bool augment, std::int64_t padding, DType dtype) {
  return {{"mean", std::vector<double>{100, 50}},
          {"std", std::vector<double>{10, 4}},
          {"augment", std::int64_t{augment}},
          {"padding", padding},
          {"bits", std::int64_t{bits_per_element(dtype)}}};
}

Tensor images_of(const Variant& variant, const Shape& shape) {
  Type type = variant.first(shape);
  type.dtype = DType::u8;
  return Tensor::random(type, 1, 0, 256);
}

TEST(ReferenceImageInput, NormalizesBytes) {
  for_every_variant([](const Variant& variant) {
    const Tensor images = images_of(variant, {3, 2, 4, 5});
    const Tensor y = run(ops::image_input, {images, Tensor::scalars({.seed = 3})}, image_attributes(false, 2, variant.dtype),
                         {.output_types = {variant.second({3, 2, 4, 5})}})[0];
    std::vector<double> expected;
    for (std::int64_t i = 0; i < images.elements(); ++i) {
      expected.push_back(i / 20 % 2 == 0 ? (images[i] - 100) / 10 : (images[i] - 50) / 4);
    }
    expect_close(y, expected);
  });
}

TEST(ReferenceImageInput, CropsThePaddedImageThenFlipsIt) {
  for_every_variant([](const Variant& variant) {
    constexpr std::int64_t kBatch = 12, kHeight = 4, kWidth = 5, kPadding = 2;
    const Scalars scalars{.seed = 3, .step = 8, .first_example = 40};
    const Tensor images = images_of(variant, {kBatch, 2, kHeight, kWidth});
    const Tensor y =
        run(ops::image_input, {images, Tensor::scalars(scalars)}, image_attributes(true, kPadding, variant.dtype))[0];
    std::vector<double> expected(static_cast<std::size_t>(y.elements()));
    int flips = 0;
    for (std::int64_t n = 0; n < kBatch; ++n) {
      const auto draw = ops::draw_image_augmentation(3, 8, 40 + static_cast<std::uint64_t>(n), kPadding);
      flips += draw.flip ? 1 : 0;
      for (std::int64_t c = 0; c < 2; ++c) {
        // Zeros around the normalized image, cut out, turned around: on whole images, step by step.
        std::vector<std::vector<double>> padded(kHeight + 2 * kPadding, std::vector<double>(kWidth + 2 * kPadding, 0.0));
        for (std::int64_t h = 0; h < kHeight; ++h) {
          for (std::int64_t w = 0; w < kWidth; ++w) {
            const double pixel = images.at(n, c, h, w);
            padded[static_cast<std::size_t>(h + kPadding)][static_cast<std::size_t>(w + kPadding)] =
                c == 0 ? (pixel - 100) / 10 : (pixel - 50) / 4;
          }
        }
        for (std::int64_t h = 0; h < kHeight; ++h) {
          const auto row = padded[static_cast<std::size_t>(h + draw.dy)].begin() + draw.dx;
          std::vector<double> cut(row, row + kWidth);
          if (draw.flip) std::reverse(cut.begin(), cut.end());
          for (std::int64_t w = 0; w < kWidth; ++w) {
            expected[static_cast<std::size_t>(y.number_of({n, c, h, w}))] = cut[static_cast<std::size_t>(w)];
          }
        }
      }
    }
    EXPECT_GT(flips, 0);
    EXPECT_LT(flips, kBatch);
    expect_close(y, expected);
  });
}

Attributes initial(std::string_view spread, double value, std::int64_t key) {
  Attributes attributes{{"key", key}};
  attributes.set(spread, value);
  return attributes;
}

TEST(ReferenceInitialize, FillsWithOneValue) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor w = run(ops::fill, {Tensor({.dtype = dtype, .shape = {5}})}, {{"value", 0.1}})[0];
    expect_close(w, std::vector<double>(5, 0.1));
  }
}

TEST(ReferenceInitialize, ValuesDoNotDependOnTheLayoutOrTheDtype) {
  const Tensor scalars = Tensor::scalars({.seed = 77, .step = 5});
  for (const auto& [op, spread] : {std::pair{&ops::init_normal, "std"}, std::pair{&ops::init_uniform, "bound"}}) {
    const Type plain{.dtype = DType::f64, .shape = {4, 3, 2, 5}};
    const std::vector<double> expected = run(*op, {Tensor(plain), scalars}, initial(spread, 0.5, 6))[0].logical();
    for_every_variant([&](const Variant& variant) {
      expect_close(run(*op, {Tensor(variant.first({4, 3, 2, 5})), scalars}, initial(spread, 0.5, 6))[0], expected);
    });
    EXPECT_NE(run(*op, {Tensor(plain), scalars}, initial(spread, 0.5, 7))[0].logical(), expected);
    EXPECT_NE(run(*op, {Tensor(plain), Tensor::scalars({.seed = 78})}, initial(spread, 0.5, 6))[0].logical(), expected);
  }
}

TEST(ReferenceInitialize, NormalHasTheMomentsOfANormal) {
  const Tensor w = run(ops::init_normal, {Tensor({.dtype = DType::f64, .shape = {40000}}), Tensor::scalars({.seed = 5})},
                       initial("std", 2.0, 1))[0];
  double moments[5] = {};
  double neighbors = 0;
  for (std::int64_t i = 0; i < w.elements(); ++i) {
    for (int power = 1; power <= 4; ++power) moments[power] += std::pow(w[i] / 2.0, power) / 40000;
    if (i > 0) neighbors += w[i] * w[i - 1] / 4 / 40000;
  }
  // Four standard errors of each.
  EXPECT_NEAR(moments[1], 0, 0.02);
  EXPECT_NEAR(moments[2], 1, 0.03);
  EXPECT_NEAR(moments[3], 0, 0.08);
  EXPECT_NEAR(moments[4], 3, 0.2);
  EXPECT_NEAR(neighbors, 0, 0.02);
}

TEST(ReferenceInitialize, UniformCoversMinusBoundToBelowBound) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor w = run(ops::init_uniform, {Tensor({.dtype = dtype, .shape = {40000}}), Tensor::scalars({.seed = 5})},
                         initial("bound", 0.3, 1))[0];
    const std::vector<double> values = w.logical();
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*least, static_cast<double>(-0.3F));
    EXPECT_LT(*least, -0.299);
    EXPECT_LT(*most, 0.3);
    EXPECT_GT(*most, 0.299);
    double squares = 0;
    for (const double value : values) squares += value * value / 40000;
    EXPECT_NEAR(squares, 0.03, 0.0006);
  }
}

}  // namespace
}  // namespace snug::backends
