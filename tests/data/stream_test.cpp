#include "data/stream.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support.h"

namespace snug::data {
namespace {

// Example i has two pixels, both i (mod 256), and label i. Reading example `broken` fails.
class Counted : public ImageDataset {
 public:
  explicit Counted(std::int64_t train, std::int64_t broken = -1) : broken_(broken) {
    description_.name = "counted";
    description_.channels = 1;
    description_.height = 1;
    description_.width = 2;
    description_.classes = 1000;
    description_.train_examples = train;
    description_.test_examples = 3;
  }
  const Description& description() const override { return description_; }
  std::int32_t read_image(Split /*split*/, std::int64_t index, std::span<std::byte> pixels) const override {
    if (index == broken_) throw_user_error("example {} is broken", index);
    std::memset(pixels.data(), static_cast<int>(index % 256), pixels.size());
    return static_cast<std::int32_t>(index);
  }

 private:
  Description description_;
  std::int64_t broken_;
};

using Labels = std::vector<std::int32_t>;

std::vector<Labels> batches_of(Stream& stream) {
  std::vector<Labels> result;
  while (const auto batch = stream.next()) result.push_back(labels_of(*batch));
  return result;
}

TEST(Stream, LastBatchIsSmallerAndNotDropped) {
  const Counted dataset(7);
  Stream stream(dataset, Split::train, 3, {});
  EXPECT_EQ(batches_of(stream), (std::vector<Labels>{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_FALSE(stream.next().has_value()) << "and it stays at the end";
}

TEST(Stream, InputsBelongToTheirLabels) {
  const Counted dataset(100);
  Stream stream(dataset, Split::train, 8, {.seed = 3, .shuffle = true});
  while (const auto batch = stream.next()) {
    ASSERT_EQ(batch->inputs.size(), 2U);
    EXPECT_EQ(batch->inputs[0].name, "images");
    EXPECT_EQ(batch->inputs[1].name, "labels");
    const std::span<const std::byte> pixels = batch->inputs[0].bytes;
    const Labels labels = labels_of(*batch);
    ASSERT_EQ(pixels.size(), labels.size() * 2);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(std::to_integer<int>(pixels[2 * i]), labels[i]);
      EXPECT_EQ(std::to_integer<int>(pixels[2 * i + 1]), labels[i]);
    }
  }
}

TEST(Stream, ReadsTheSplitItWasAskedFor) {
  const Counted dataset(100);
  Stream stream(dataset, Split::test, 2, {});
  EXPECT_EQ(batches_of(stream), (std::vector<Labels>{{0, 1}, {2}}));
}

TEST(Stream, ShufflesEachEpochAnewAndShowsEveryExampleOnce) {
  const Counted dataset(50);
  Stream stream(dataset, Split::train, 20, {.seed = 1, .shuffle = true, .repeat = true});
  std::vector<Labels> epochs(3);
  for (int i = 0; i < 9; ++i) {
    const auto batch = stream.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->epoch, static_cast<std::uint64_t>(i / 3));
    EXPECT_EQ(batch->position, static_cast<std::uint64_t>(i % 3 * 20));
    EXPECT_EQ(batch->examples, i % 3 == 2 ? 10U : 20U);
    Labels& epoch = epochs[batch->epoch];
    const Labels labels = labels_of(*batch);
    epoch.insert(epoch.end(), labels.begin(), labels.end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  Labels all(50);
  std::iota(all.begin(), all.end(), 0);
  for (Labels& epoch : epochs) {
    EXPECT_NE(epoch, all);
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, all);
  }
}

TEST(Stream, ResumesBehindAnyBatch) {
  const Counted dataset(23);
  const StreamOptions from_the_start{.seed = 9, .shuffle = true, .repeat = true};
  Stream whole(dataset, Split::train, 5, from_the_start);
  StreamOptions resumed_at = from_the_start;
  for (int i = 0; i < 12; ++i) {
    const auto expected = whole.next();
    Stream resumed(dataset, Split::train, 5, resumed_at);
    const auto batch = resumed.next();
    ASSERT_TRUE(expected && batch);
    EXPECT_TRUE(labels_of(*batch) == labels_of(*expected));
    EXPECT_EQ(batch->epoch, expected->epoch);
    EXPECT_EQ(batch->position, expected->position);
    resumed_at.epoch = batch->epoch;
    resumed_at.position = batch->position + batch->examples;
  }
}

TEST(Stream, EndOfAnEpochIsAPositionToStartFrom) {
  const Counted dataset(4);
  Stream once(dataset, Split::train, 2, {.epoch = 5, .position = 4});
  EXPECT_FALSE(once.next().has_value());
  Stream repeated(dataset, Split::train, 2, {.epoch = 5, .position = 4, .repeat = true});
  const auto batch = repeated.next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->epoch, 6U);
  EXPECT_EQ(batch->position, 0U);
}

TEST(Stream, PositionBeyondTheEpochIsRefused) {
  const Counted dataset(4);
  const std::string error = user_error_of([&] { Stream(dataset, Split::train, 2, {.position = 5}); });
  EXPECT_NE(error.find("only 4 examples"), std::string::npos) << error;
}

TEST(Stream, BatchLargerThanTheSetIsTheWholeSetAndTakesNoMoreMemory) {
  const Counted dataset(3);
  Stream stream(dataset, Split::train, 1'000'000, {});
  EXPECT_EQ(batches_of(stream), (std::vector<Labels>{{0, 1, 2}}));
  EXPECT_EQ(stream.buffer_bytes(), 2 * 3 * (2 + 4));
}

TEST(Stream, ErrorComesAfterTheBatchesBeforeIt) {
  const Counted dataset(10, 5);
  Stream stream(dataset, Split::train, 2, {});
  EXPECT_EQ(labels_of(*stream.next())[0], 0);
  EXPECT_EQ(labels_of(*stream.next())[0], 2);
  EXPECT_EQ(user_error_of([&] { stream.next(); }), "example 5 is broken");
  EXPECT_EQ(user_error_of([&] { stream.next(); }), "example 5 is broken") << "and at every later call";
}

TEST(Stream, BatchStaysUntouchedUntilTheNextCall) {
  const Counted dataset(200);
  Stream stream(dataset, Split::train, 10, {.repeat = true});
  for (int i = 0; i < 200; ++i) {
    const auto batch = stream.next();
    const Labels before = labels_of(*batch);
    std::this_thread::yield();  // lets the reader run ahead
    EXPECT_TRUE(labels_of(*batch) == before);
    EXPECT_EQ(before[0], i % 20 * 10);
  }
}

TEST(Stream, EndsAtAnyMoment) {
  const Counted dataset(1000);
  for (int taken = 0; taken < 20; ++taken) {
    Stream stream(dataset, Split::train, 1, {.repeat = true});
    for (int i = 0; i < taken; ++i) stream.next();
  }
}

}  // namespace
}  // namespace snug::data
