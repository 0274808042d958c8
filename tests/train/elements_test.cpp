#include "io/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/half.h"
#include "small_session.h"

namespace snug::train {

namespace {

std::uint16_t to_bf16(double value) {
  std::uint16_t bits = 0;
  io::convert_elements(DType::f64, std::as_bytes(std::span(&value, 1)), DType::bf16, std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

TEST(Elements, ChannelsLastBecomesLogicalOrderAndBack) {
  const Type type{.dtype = DType::i32, .shape = {2, 3, 2, 2}, .layout = Layout::channels_last()};
  std::vector<std::int32_t> stored;
  for (std::int32_t n = 0; n < 2; ++n) {
    for (std::int32_t pixel = 0; pixel < 4; ++pixel) {
      for (std::int32_t c = 0; c < 3; ++c) stored.push_back(100 * n + 10 * c + pixel);
    }
  }
  std::vector<std::int32_t> logical(stored.size());
  io::to_logical_order(type, std::as_bytes(std::span(stored)), std::as_writable_bytes(std::span(logical)));
  std::vector<std::int32_t> expected;
  for (std::int32_t n = 0; n < 2; ++n) {
    for (std::int32_t c = 0; c < 3; ++c) {
      for (std::int32_t pixel = 0; pixel < 4; ++pixel) expected.push_back(100 * n + 10 * c + pixel);
    }
  }
  EXPECT_EQ(logical, expected);
  std::vector<std::int32_t> back(stored.size());
  io::from_logical_order(type, std::as_bytes(std::span(logical)), std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, stored);
}

TEST(Elements, BfloatRoundsOnceToNearestEven) {
  EXPECT_EQ(to_bf16(1.0), 0x3F80);
  EXPECT_EQ(to_bf16(-2.5), 0xC020);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8), 0x3F80);            // a tie, to even
  EXPECT_EQ(to_bf16(1.0 + 3 * 0x1p-8), 0x3F82);        // a tie, to even
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8 + 0x1p-40), 0x3F81);  // above the tie by less than a float sees
  EXPECT_EQ(to_bf16(1.0 + 3 * 0x1p-8 - 0x1p-40), 0x3F81);
  EXPECT_EQ(to_bf16(1e39), 0x7F80);
  EXPECT_EQ(to_bf16(-1e-60), 0x8000);
  EXPECT_EQ(to_bf16(std::numeric_limits<double>::infinity()), 0x7F80);
  EXPECT_EQ(to_bf16(std::numeric_limits<double>::quiet_NaN()) & 0x7FC0, 0x7FC0);
}

TEST(Elements, EveryNarrowNumberSurvivesTheWayThroughDoubles) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (unsigned i = 0; i < 0x10000U; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      double value = 0;
      std::uint16_t back = 0;
      io::convert_elements(dtype, std::as_bytes(std::span(&bits, 1)), DType::f64, std::as_writable_bytes(std::span(&value, 1)));
      io::convert_elements(DType::f64, std::as_bytes(std::span(&value, 1)), dtype, std::as_writable_bytes(std::span(&back, 1)));
      if (std::isnan(value)) continue;
      ASSERT_EQ(back, bits) << name_of(dtype);
    }
  }
}

TEST(SessionStates, BytesAndDoublesAreTheSameValuesInEveryLayout) {
  Session session = small_session();
  const Program& program = session.plan().program;
  bool opaque = false;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const State& state = program.states[i];
    if (state.role != Role::parameter) continue;
    opaque = opaque || state.type.layout.kind == Layout::Kind::opaque;
    std::vector<double> values(static_cast<std::size_t>(state.type.elements()));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k) + 0.5;
    session.write_state(state.name, values);
    std::vector<float> floats(values.size());
    session.read_logical(StateId(i), std::as_writable_bytes(std::span(floats)));
    EXPECT_EQ(std::vector<double>(floats.begin(), floats.end()), values) << state.name;
    for (float& f : floats) f = -f;
    session.write_logical(StateId(i), std::as_bytes(std::span(floats)));
    for (double& v : values) v = -v;
    EXPECT_EQ(session.read_state(state.name), values) << state.name;
  }
  EXPECT_TRUE(opaque) << "the model no longer has a weight in a library's own layout; give this test one that has";
}

}  // namespace

}  // namespace snug::train
