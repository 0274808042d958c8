// The judge of plans, on real plans that were damaged on purpose: every damage must be found.
#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "support/messages.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

class Vandal {
 public:
  explicit Vandal(std::uint64_t seed) : random_(seed) {}

  // Does one thing that makes the plan wrong, and says what.
  std::string damage(Plan& plan) {
    static const std::vector<std::pair<std::string, std::string (Vandal::*)(Plan&)>> kWays{
        {"a state moved", &Vandal::move_state},
        {"a state put on another", &Vandal::stack_states},
        {"a state off the alignment", &Vandal::misalign_state},
        {"a state's offset missing", &Vandal::drop_state},
        {"a buffer put on another", &Vandal::stack_buffers},
        {"a buffer off the alignment", &Vandal::misalign_buffer},
        {"a buffer among the states", &Vandal::sink_buffer},
        {"a buffer above the arena", &Vandal::lift_buffer},
        {"a buffer's offset missing", &Vandal::drop_buffer},
        {"a section not placed", &Vandal::drop_section},
        {"another peak", &Vandal::change_peak},
        {"another height", &Vandal::change_height},
        {"another end of the states", &Vandal::change_persistent},
        {"everything one byte higher", &Vandal::shift_all},
        {"red zones that are not there", &Vandal::claim_red_zone},
        {"a shorter lifetime", &Vandal::shorten_life},
        {"a smaller buffer", &Vandal::shrink_buffer},
        {"a value in another buffer", &Vandal::swap_buffers},
        {"a larger value", &Vandal::grow_value},
    };
    const auto& [name, way] = kWays[below(kWays.size())];
    return name + ": " + (this->*way)(plan);
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  Bytes boundaries() { return kAlignment * static_cast<std::int64_t>(1 + below(1000)); }
  Bytes crumbs() { return Bytes(static_cast<std::int64_t>(1 + below(63))); }

  // A section with buffers.
  SectionPlan& section(Plan& plan) {
    while (true) {
      SectionPlan& candidate = plan.sections[below(plan.sections.size())];
      if (!candidate.offsets.empty()) return candidate;
    }
  }
  std::size_t buffer(const SectionPlan& placed) { return below(placed.offsets.size()); }

  std::string move_state(Plan& plan) {
    Bytes& offset = plan.state_offsets[below(plan.state_offsets.size())];
    const Bytes before = offset;
    offset = below(2) == 0 ? before + boundaries() : before - boundaries();
    return fmt::format("{} to {}", before.count(), offset.count());
  }
  std::string stack_states(Plan& plan) {
    const std::size_t a = below(plan.state_offsets.size());
    const std::size_t b = (a + 1 + below(plan.state_offsets.size() - 1)) % plan.state_offsets.size();
    plan.state_offsets[a] = plan.state_offsets[b];
    return fmt::format("{} on {}", a, b);
  }
  std::string misalign_state(Plan& plan) {
    Bytes& offset = plan.state_offsets[below(plan.state_offsets.size())];
    offset += crumbs();
    return fmt::format("{}", offset.count());
  }
  std::string drop_state(Plan& plan) {
    plan.state_offsets.pop_back();
    return "the last";
  }
  std::string stack_buffers(Plan& plan) {
    while (true) {
      SectionPlan& placed = section(plan);
      const std::size_t a = buffer(placed);
      const std::size_t b = buffer(placed);
      const Buffer& first = placed.liveness.buffers[a];
      const Buffer& second = placed.liveness.buffers[b];
      if (a == b || first.begin >= second.end || second.begin >= first.end) continue;
      placed.offsets[a] = placed.offsets[b];
      return fmt::format("{} on {}", a, b);
    }
  }
  std::string misalign_buffer(Plan& plan) {
    SectionPlan& placed = section(plan);
    placed.offsets[buffer(placed)] += crumbs();
    return "";
  }
  std::string sink_buffer(Plan& plan) {
    SectionPlan& placed = section(plan);
    placed.offsets[buffer(placed)] = plan.persistent_bytes - boundaries();
    return "";
  }
  std::string lift_buffer(Plan& plan) {
    SectionPlan& placed = section(plan);
    placed.offsets[buffer(placed)] = round_up(plan.planned_peak_bytes, kAlignment) + boundaries();
    return "";
  }
  std::string drop_buffer(Plan& plan) {
    section(plan).offsets.pop_back();
    return "the last";
  }
  std::string drop_section(Plan& plan) {
    plan.sections.pop_back();
    return "the last";
  }
  std::string change_peak(Plan& plan) {
    plan.planned_peak_bytes = below(2) == 0 ? plan.planned_peak_bytes + crumbs() : plan.planned_peak_bytes - boundaries();
    return fmt::format("{}", plan.planned_peak_bytes.count());
  }
  std::string change_height(Plan& plan) {
    Bytes& height = plan.sections[below(plan.sections.size())].height;
    height = below(2) == 0 ? height + boundaries() : height - crumbs();
    return fmt::format("{}", height.count());
  }
  std::string change_persistent(Plan& plan) {
    plan.persistent_bytes = below(2) == 0 ? plan.persistent_bytes + crumbs() : plan.persistent_bytes - boundaries();
    return "";
  }
  std::string shift_all(Plan& plan) {
    const Bytes by = crumbs();
    plan.persistent_bytes += by;
    plan.planned_peak_bytes += by;
    for (SectionPlan& placed : plan.sections) {
      for (Bytes& offset : placed.offsets) offset += by;
    }
    return fmt::format("by {}", by.count());
  }
  std::string claim_red_zone(Plan& plan) {
    plan.red_zone = boundaries();
    return "";
  }
  std::string shorten_life(Plan& plan) {
    while (true) {
      SectionPlan& placed = section(plan);
      Buffer& shortened = placed.liveness.buffers[buffer(placed)];
      if (shortened.end - shortened.begin < 2) continue;
      ++(below(2) == 0 ? shortened.begin : (shortened.end -= 2));
      return "";
    }
  }
  std::string shrink_buffer(Plan& plan) {
    SectionPlan& placed = section(plan);
    placed.liveness.buffers[buffer(placed)].size -= Bytes(1);
    return "";
  }
  std::string swap_buffers(Plan& plan) {
    while (true) {
      SectionPlan& placed = section(plan);
      std::vector<BufferId>& of = placed.liveness.buffer_of;
      BufferId& a = of[below(of.size())];
      const BufferId& b = of[below(of.size())];
      if (a == b) continue;
      a = b;
      return "";
    }
  }
  std::string grow_value(Plan& plan) {
    const std::size_t index = static_cast<std::size_t>(&section(plan) - plan.sections.data());
    const Buffer& grown = plan.sections[index].liveness.buffers[buffer(plan.sections[index])];
    Type& type = plan.program.sections[index].value(grown.tenants.front().value).type;
    const Bytes before = type.bytes();
    type.shape = Shape{before.count() + 1};
    type.dtype = DType::u8;
    return "";
  }

  std::mt19937_64 random_;
};

TEST(DamagedPlans, AreAllRejected) {
  const AcceptingBackend backend({.workspace = {{"conv2d", Bytes(1000)}}, .refuses_accumulation = {"conv2d_grad_weight"}});
  std::vector<Plan> plans;
  for (const ZooModel& model : {ZooModel{"small-cnn"}, ZooModel{"wrn-10-1"}, ZooModel{"preresnet-29"}, ZooModel{"vgg-16", 32}}) {
    for (const std::int64_t batch : {1, 5}) plans.push_back(compile(build(model, batch), backend));
  }
  Vandal vandal(20240607);
  std::map<std::string, int> found;
  for (int i = 0; i < 2000; ++i) {
    Plan plan = plans[static_cast<std::size_t>(i) % plans.size()];
    ASSERT_EQ(find_violation(plan), std::nullopt);
    const std::string damage = vandal.damage(plan);
    EXPECT_NE(find_violation(plan), std::nullopt) << plan.program.name << ": " << damage;
    ++found[damage.substr(0, damage.find(':'))];
  }
  EXPECT_EQ(found.size(), 19U);  // every kind of damage was tried
}

TEST(DamagedPlans, AreDescribed) {
  const AcceptingBackend backend;
  const Plan sound = compile(build({"small-cnn"}, 2), backend);
  const auto complaint = [&](const std::function<void(Plan&)>& damage) {
    Plan plan = sound;
    damage(plan);
    return find_violation(plan).value_or("");
  };
  EXPECT_EQ(complaint([](Plan& plan) { plan.state_offsets[3] -= kAlignment; }),
            fmt::format("state 'conv1.weight' at {} overlaps the one before it", sound.state_offsets[3].count() - 64));
  EXPECT_TRUE(
      support::mentions(complaint([](Plan& plan) { plan.state_offsets[1] += Bytes(8); }), {"'metrics'", "72", "alignment"}));
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { plan.state_offsets.pop_back(); }), {"state", "not", "offset"}));
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { plan.sections.pop_back(); }), {"section", "not", "placed"}));
  EXPECT_TRUE(
      support::mentions(complaint([](Plan& plan) { plan.persistent_bytes -= kAlignment; }), {"reach", "persistent", "region"}));
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { plan.persistent_bytes += Bytes(1); }), {"transient", "alignment"}));
  EXPECT_EQ(complaint([](Plan& plan) { plan.planned_peak_bytes += Bytes(1); }),
            fmt::format("the arena has {} bytes but the last one used is {}", sound.planned_peak_bytes.count() + 1,
                        sound.planned_peak_bytes.count()));
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { --plan.sections[1].liveness.buffers[0].end; }),
                                {"micro", "lifetimes", "not"}));
  EXPECT_TRUE(complaint([](Plan& plan) { plan.sections[1].offsets[0] += Bytes(1); }).starts_with("section micro: "));
}

}  // namespace
}  // namespace snug::testing
