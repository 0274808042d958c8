#include "passes/model/add_shape.h"

#include <utility>

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "support/messages.h"

namespace snug {
namespace {

Program small(std::int64_t batch, std::int64_t classes = 10) {
  return frontend::build_zoo_model("small-cnn", {.batch = batch, .classes = classes, .image_size = 16});
}

TEST(AddShape, BothShapesReadWhatIsStagedInOnePlace) {
  const Program program = add_shape(small(10), small(7));
  EXPECT_EQ(find_defect(program), std::nullopt);
  EXPECT_EQ(program.states.size(), small(10).states.size());
  const std::string text = print(program);
  EXPECT_NE(text.find("section forward of 7\n"), std::string::npos);
  EXPECT_NE(text.find("image_input(images@0 as u8[7x3x16x16]/channels_last, scalars@0)"), std::string::npos);
  EXPECT_NE(text.find("image_input(images@0, scalars@0)"), std::string::npos);
  EXPECT_EQ(print(parse_program(text, ops::find)), text);
}

TEST(AddShape, OfAnotherModelIsRefused) {
  EXPECT_THROW(add_shape(small(10), small(7, 11)), UserError);
  EXPECT_THROW(add_shape(small(10), frontend::build_zoo_model("wrn-10-1", {.batch = 7})), UserError);
  EXPECT_THROW(add_shape(small(7), small(10)), UserError);  // there is no room for ten
}

TEST(AddShape, TheSameShapeTwiceIsNoProgram) {
  Program program = add_shape(small(10), small(7));
  program = add_shape(std::move(program), small(7));
  EXPECT_TRUE(support::mentions(find_defect(program).value_or(""), {"sections", "'forward of 7'"}));
}

TEST(AddShape, ALengthIsPartOfAShape) {
  EXPECT_EQ(to_string(SectionId(SectionKind::micro, {.examples = 4, .length = 128})), "micro of 4x128");
  const Program program =
      parse_program("program a batch 8 microbatch 8\nsection micro of 4x128\nsection micro of 4x64\n", ops::find);
  EXPECT_NE(program.find_section({SectionKind::micro, {.examples = 4, .length = 64}}), nullptr);
  EXPECT_EQ(program.find_section(SectionKind::micro), nullptr);
}

}  // namespace
}  // namespace snug
