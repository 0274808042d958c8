#include "ir/section_editor.h"

#include <gtest/gtest.h>

#include "test_ops.h"

namespace snug::testing {
namespace {

// states w and g; a = make, b = copy(a), v = view(b), c = sum(a, v), w@1 = copy(c)
struct Fixture {
  std::vector<State> states{{.name = "w", .type = {.dtype = DType::f32, .shape = {4}}}};
  Section section{.kind = SectionKind::micro, .values = {}, .nodes = {}};
  ValueId a, b, v, c, w;

  Fixture() {
    SectionBuilder builder(states, section);
    const Attributes shape{{"shape", std::vector<std::int64_t>{4}}};
    a = builder.emit(*find_test_op("make"), {}, shape, {.name = "a"}).front();
    b = builder.emit(*find_test_op("copy"), {a}, {}, {.name = "b"}).front();
    v = builder.emit(*find_test_op("view"), {b}, shape, {.name = "v"}).front();
    c = builder.emit(*find_test_op("sum"), {a, v}, {}, {.name = "c"}).front();
    w = builder.emit(*find_test_op("copy"), {c}, {}, {.writes = {StateId(0)}}).front();
  }

  std::string names() const {
    std::string names;
    for (const Node& node : section.nodes) {
      const Value& value = section.value(node.outputs[0]);
      names += (names.empty() ? "" : " ") + value.name + (value.is_state() ? fmt::format("@{}", value.version) : "");
    }
    return names;
  }
};

TEST(SectionEditor, KnowsWhoMakesAndReadsAValueAndWhereItLies) {
  Fixture f;
  SectionEditor editor(f.states, f.section);
  EXPECT_EQ(editor.maker(f.c), 3U);
  EXPECT_EQ(editor.maker(editor.read(StateId(0))), 4U);
  EXPECT_EQ(editor.readers(f.a), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(editor.last_use(f.a), 3U);
  EXPECT_EQ(editor.last_use(f.w), 4U);  // nobody reads it
  EXPECT_EQ(editor.root(f.v), f.b);
  EXPECT_EQ(editor.root(f.c), f.c);
  EXPECT_EQ(editor.last_writer(StateId(0)), 4U);
  EXPECT_EQ(editor.last_writer(StateId(1)), SectionEditor::kNobody);
}

TEST(SectionEditor, InsertionsStandBesideTheirNodesInTheOrderInWhichTheyWereMade) {
  Fixture f;
  SectionEditor editor(f.states, f.section);
  const OpDef& copy = *find_test_op("copy");
  editor.emit_behind(1, copy, {f.b}, {}, {.name = "second"});
  editor.emit_before(1, copy, {f.a}, {}, {.name = "first"});
  editor.emit_behind(1, copy, {f.b}, {}, {.name = "third"});
  EXPECT_EQ(f.names(), "a b v c w@1") << "nothing moves before apply()";
  editor.apply();
  EXPECT_EQ(f.names(), "a first b second third v c w@1");
  EXPECT_EQ(editor.maker(f.c), 6U) << "positions are anew those of the nodes";
}

TEST(SectionEditor, ANodeInThePlaceOfAnotherStandsBeforeWhatIsBehindThat) {
  Fixture f;
  SectionEditor editor(f.states, f.section);
  editor.emit_behind(1, *find_test_op("copy"), {f.a}, {}, {.name = "behind"});
  const ValueId other = editor.emit_instead(1, *find_test_op("plain"), {f.a}, {}, {.name = "other"}).front();
  editor.replace_uses(f.b, other, 0);
  editor.apply();
  EXPECT_EQ(f.names(), "a other behind v c w@1");
  EXPECT_EQ(editor.readers(other), (std::vector<std::size_t>{3}));
}

TEST(SectionEditor, UsesAreReplacedFromANodeOn) {
  Fixture f;
  SectionEditor editor(f.states, f.section);
  editor.replace_uses(f.a, f.b, 2);
  EXPECT_EQ(editor.readers(f.a), (std::vector<std::size_t>{1}));
  EXPECT_EQ(editor.readers(f.b), (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(f.section.nodes[3].inputs, (std::vector<ValueId>{f.b, f.v}));
}

TEST(SectionEditor, AnErasedNodeReadsNothing) {
  Fixture f;
  SectionEditor editor(f.states, f.section);
  EXPECT_EQ(editor.readers(f.c).size(), 1U);
  editor.erase(4);
  EXPECT_TRUE(editor.readers(f.c).empty());
  editor.apply();
  EXPECT_EQ(f.names(), "a b v c");
  EXPECT_EQ(editor.last_writer(StateId(0)), SectionEditor::kNobody);
}

TEST(SectionEditor, FurtherInputsAndOtherOutputsAreKnown) {
  Fixture f;
  SectionEditor editor(f.states, f.section);
  EXPECT_EQ(editor.readers(f.b).size(), 1U);
  editor.maker(f.b);
  editor.add_input(1, f.b);
  EXPECT_EQ(editor.readers(f.b), (std::vector<std::size_t>{1, 2}));
  editor.set_output(1, 0, f.c);
  EXPECT_EQ(editor.maker(f.c), 1U);
  EXPECT_EQ(editor.maker(f.b), SectionEditor::kNobody);
}

TEST(SectionEditor, AClonesValuesAreItsOwn) {
  Fixture f;
  SectionEditor editor(f.section);
  const Node once = editor.clone(f.section.nodes[1]);
  const Node twice = editor.clone(f.section.nodes[1]);
  EXPECT_EQ(once.phase, Phase::recompute);
  EXPECT_EQ(once.inputs, f.section.nodes[1].inputs);
  EXPECT_EQ(f.section.value(once.outputs[0]).name, "b.again");
  EXPECT_EQ(f.section.value(twice.outputs[0]).name, "b.again.2");
}

TEST(UniqueNames, TakeNoLongerTheOftenerANameIsAskedFor) {
  UniqueNames names;
  names.take("x.2");
  EXPECT_EQ(names.make("x"), "x");
  EXPECT_EQ(names.make("x"), "x.3");
  std::string last;
  for (int i = 0; i < 100'000; ++i) last = names.make("x");
  EXPECT_EQ(last, "x.100003");
}

}  // namespace
}  // namespace snug::testing
