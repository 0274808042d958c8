#include "data/permutation.h"

#include <bit>

#include "base/error.h"
#include "base/philox.h"

namespace snug::data {

namespace {

// Makes the numbers drawn here independent of those drawn elsewhere from the same seed.
constexpr std::uint64_t kPurpose = 0x65706F63682D6F72U;  // "epoch-or"(der)
// Four rounds make a Feistel network practically indistinguishable from random; small domains need a few more.
constexpr std::uint64_t kRounds = 8;

constexpr std::uint64_t low_bits(unsigned count) { return (std::uint64_t{1} << count) - 1; }

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size)
    : key_(seed ^ kPurpose), epoch_(epoch), size_(size), bits_(static_cast<unsigned>(std::bit_width(size - 1))) {
  SNUG_CHECK(size > 0 && bits_ < 64, "a permutation of {} things", size);
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  SNUG_CHECK(index < size_, "place {} of a permutation of {}", index, size_);
  if (bits_ == 0) return 0;
  // The network permutes all numbers of bits_ bits. A walk from below size_ returns below size_, at the latest where it started.
  std::uint64_t value = index;
  do value = scramble(value);
  while (value >= size_);
  return value;
}

// The halves may differ by a bit; they are swapped every round, and each round mixes the left with a function of the right.
std::uint64_t Permutation::scramble(std::uint64_t value) const {
  unsigned right_bits = bits_ / 2;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const unsigned left_bits = bits_ - right_bits;
    const std::uint64_t right = value & low_bits(right_bits);
    const std::uint64_t left = value >> right_bits;
    const PhiloxBlock random = philox(key_, right | (round << 48U), epoch_);
    const std::uint64_t mixed = (left ^ random.word[0]) & low_bits(left_bits);
    value = (right << left_bits) | mixed;
    right_bits = left_bits;
  }
  return value;
}

}  // namespace snug::data
