#include "placement/validate.h"

#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "picture.h"
#include "placement/heuristics.h"
#include "random_problem.h"
#include "support/messages.h"

namespace snug::placement {
namespace {

// The sentence, or "" for a valid placement.
std::string complaint(const Problem& problem, const Placement& placement) {
  return find_violation(problem, placement).value_or("");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const Picture kTidy{"..CCC..",  //
                    "BBB.DDD",  //
                    "BBB.DDD",  //
                    "AAAAAA."};

TEST(Validate, AcceptsATidyPlacement) {
  const auto [problem, placement] = read_picture(kTidy);
  ASSERT_EQ(problem.items.size(), 4U);
  EXPECT_EQ(complaint(problem, placement), "");
}

TEST(Validate, AcceptsNothingAtAll) { EXPECT_EQ(complaint({}, {}), ""); }

TEST(Validate, ItemsAliveTogetherMustNotOverlap) {
  auto [problem, placement] = read_picture(kTidy);
  placement.offsets[1] = kAlignment * 2;  // B moves up by one row, into C at step 2
  EXPECT_TRUE(support::mentions(complaint(problem, placement), {"1", "2", "overlap", "128", "256", "192"}));
}

TEST(Validate, FindsAnItemHiddenInsideAnother) {
  const Problem problem = problem_of({{"####", 4}, {".##.", 1}});
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(0), kAlignment * 2}, kAlignment * 4}), "overlap"));
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(0), Bytes(0)}, kAlignment * 4}), "overlap"));
}

TEST(Validate, OneSharedByteIsAnOverlap) {
  const Problem problem{.items = {{Bytes(65), 0, 2}, {Bytes(64), 1, 3}}};
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(0), Bytes(64)}, Bytes(128)}), "overlap"));
  EXPECT_EQ(complaint(problem, {{Bytes(0), Bytes(128)}, Bytes(192)}), "");
}

TEST(Validate, ItemsThatTouchInTimeMayShareBytes) {
  EXPECT_EQ(complaint(problem_of({{"##..", 2}, {"..##", 2}}), {{Bytes(0), Bytes(0)}, kAlignment * 2}), "");
}

TEST(Validate, AnItemOfNoBytesOverlapsNothing) {
  EXPECT_EQ(complaint({.items = {{Bytes(100), 0, 2}, {Bytes(0), 0, 2}}}, {{Bytes(0), Bytes(64)}, Bytes(100)}), "");
}

TEST(Validate, EveryItemHasAnOffset) {
  EXPECT_EQ(complaint(problem_of({{"##", 1}}), {{}, Bytes(0)}), "0 offsets for 1 items");
  EXPECT_EQ(complaint({}, {{Bytes(0)}, Bytes(0)}), "1 offsets for 0 items");
}

TEST(Validate, OffsetsAreMultiplesOfTheAlignmentAndNotNegative) {
  const Problem problem = problem_of({{"##", 1}});
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(-64)}, Bytes(0)}), "negative"));
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(32)}, Bytes(96)}), "not a multiple of 64"));
  EXPECT_EQ(complaint({.items = problem.items, .alignment = Bytes(32)}, {{Bytes(32)}, Bytes(96)}), "");
}

TEST(Validate, TheHeightIsTheEndOfTheHighestItemToTheByte) {
  const Problem problem{.items = {{Bytes(65), 0, 1}}};
  EXPECT_EQ(complaint(problem, {{Bytes(0)}, Bytes(65)}), "");
  EXPECT_TRUE(support::mentions(complaint(problem, {{Bytes(0)}, Bytes(128)}), {"128", "highest", "65"}));
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(0)}, Bytes(64)}), "above the height"));
  EXPECT_TRUE(contains(complaint(problem, {{Bytes(0)}, Bytes(-1)}), "the height is -1"));
}

TEST(Validate, OffsetsNearTheEndOf64BitsDoNotOverflow) {
  const Bytes last(std::numeric_limits<std::int64_t>::max() - 63);
  EXPECT_TRUE(contains(complaint(problem_of({{"##", 2}}), {{last}, Bytes(128)}), "above the height"));
}

TEST(Validate, RefusesProblemsThatMakeNoSense) {
  EXPECT_TRUE(contains(complaint({.items = {{Bytes(64), 2, 2}}}, {{Bytes(0)}, Bytes(64)}), "no step at all"));
  EXPECT_TRUE(contains(complaint({.items = {{Bytes(-64), 1, 2}}}, {{Bytes(0)}, Bytes(0)}), "size of -64"));
  EXPECT_TRUE(contains(complaint({.items = {}, .alignment = Bytes(0)}, {{}, Bytes(0)}), "alignment is 0"));
}

// Real damage of each kind, and what the validator must say about it.
class Vandal {
 public:
  Vandal(const Problem& problem, const Placement& placement, Random& random)
      : problem_(problem), damaged_(placement), random_(random) {}

  static constexpr int kKinds = 7;

  std::string do_damage(int kind) {
    const std::size_t victim = any_item();
    Bytes& offset = damaged_.offsets[victim];
    switch (kind) {
      case 0: {  // into an item that lives at the same time, by whole alignments, with an honest height: nothing else is wrong
        const auto [mover, other] = two_alive_together();
        const std::int64_t rows = (problem_.items[other].size.count() - 1) / kAlignment.count();
        damaged_.offsets[mover] = damaged_.offsets[other] + kAlignment * random_.between(0, rows);
        damaged_.height = top();
        return "overlap";
      }
      case 1:
        offset += Bytes(random_.between(1, kAlignment.count() - 1));
        damaged_.height = top();
        return "not a multiple of";
      case 2:
        offset = kAlignment * -random_.between(1, 1000);
        return "negative";
      case 3:
        offset = round_up(damaged_.height, kAlignment) + kAlignment * random_.between(0, 1000);
        return "above the height";
      case 4:
        damaged_.height += Bytes(random_.between(1, 1000));
        return "but the highest item ends at";
      case 5:
        damaged_.height -= Bytes(random_.between(1, damaged_.height.count()));
        return "above the height";
      default:
        damaged_.offsets.pop_back();
        return "offsets for";
    }
  }

  const Placement& damaged() const { return damaged_; }

 private:
  std::size_t any_item() {
    while (true) {
      const auto item = static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(problem_.items.size()) - 1));
      if (problem_.items[item].size.count() > 0) return item;
    }
  }

  std::pair<std::size_t, std::size_t> two_alive_together() {
    while (true) {
      const std::size_t a = any_item();
      const std::size_t b = any_item();
      const Item& first = problem_.items[a];
      const Item& second = problem_.items[b];
      if (a != b && first.begin < second.end && second.begin < first.end) return {a, b};
    }
  }

  Bytes top() const {
    Bytes top;
    for (std::size_t i = 0; i < problem_.items.size(); ++i) top = std::max(top, damaged_.offsets[i] + problem_.items[i].size);
    return top;
  }

  const Problem& problem_;
  Placement damaged_;
  Random& random_;
};

TEST(Validate, RejectsAThousandDamagedPlacements) {
  Random random(1);
  int rejected = 0;
  std::array<int, Vandal::kKinds> rejected_of_kind{};
  for (int i = 0; i < 1000; ++i) {
    const Problem problem = make_random_problem(random, {.items = 60, .steps = 40, .longest_life = 12, .largest_size = 2000});
    const Timeline timeline = make_timeline(problem);
    const Placement placement = place_in_order(problem, timeline, heuristics().front().order(problem, timeline));
    ASSERT_EQ(complaint(problem, placement), "");

    const int kind = i % Vandal::kKinds;
    Vandal vandal(problem, placement, random);
    const std::string expected = vandal.do_damage(kind);
    const std::string heard = complaint(problem, vandal.damaged());
    EXPECT_TRUE(contains(heard, expected)) << "damage of kind " << kind << ", heard: '" << heard << "'";
    if (heard.empty()) continue;
    ++rejected;
    ++rejected_of_kind[static_cast<std::size_t>(kind)];
  }
  EXPECT_EQ(rejected, 1000);
  for (const int count : rejected_of_kind) EXPECT_GE(count, 1000 / Vandal::kKinds);
}

}  // namespace
}  // namespace snug::placement
