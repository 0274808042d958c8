#include "backends/cpu/simd/code_table.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace snug::backends::cpu::simd {
namespace {

TEST(CodeTable, FindsTheNumberThatASearchFinds) {
  for (const auto& [code, table] :
       {std::pair(&ops::kSignedCode, &kSignedTable), std::pair(&ops::kUnsignedCode, &kUnsignedTable)}) {
    const auto check = [&](float share) { ASSERT_EQ((*table)(share), ops::nearest_number(*code, share)) << share; };
    const auto check_around = [&](float share) {
      for (const float near : {share, std::nextafter(share, -2.0F), std::nextafter(share, 2.0F)}) {
        if (std::abs(near) <= 1) check(near);
        if (std::abs(near) <= 1) check(-near);
      }
    };
    for (int i = 0; i < 255; ++i) check_around(code->bounds[i]);
    for (const float value : code->values) check_around(value);
    for (float share = 1; share > 1e-12F; share *= 0.9993F) check_around(share);
    for (float share = 1; share > 1e-9F; share /= 2) check_around(share);
    check_around(0);
    check(std::numeric_limits<float>::quiet_NaN());
    check(-std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace
}  // namespace snug::backends::cpu::simd
