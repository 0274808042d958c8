#include "report/timeline.h"

#include <gtest/gtest.h>

#include "report/json.h"
#include "report/moments.h"
#include "tiny_plan.h"

namespace snug::report {
namespace {

using Json = nlohmann::ordered_json;

// A column of names written out.
std::vector<std::string> names_of(const Json& timeline, const Json& columns) {
  std::vector<std::string> names;
  std::string last;
  for (std::size_t i = 0; i < columns.at("prefix").size(); ++i) {
    last = last.substr(0, columns.at("prefix").at(i).get<std::size_t>()) +
           timeline.at("words").at(columns.at("rest").at(i).get<std::size_t>()).get<std::string>();
    names.push_back(last);
  }
  return names;
}

// The timeline with bytes and offsets instead of indices, and where lives begin and end.
Json written_out(Json timeline) {
  const auto looked_up = [](const Json& indices, const Json& list) {
    Json result = Json::array();
    for (const Json& index : indices) result.push_back(list.at(index.get<std::size_t>()));
    return result;
  };
  const auto write = [&](Json& columns) {
    columns["bytes"] = looked_up(Json(columns.at("size")), timeline.at("sizes"));
    columns["offset"] = looked_up(Json(columns.at("place")), timeline.at("places"));
  };
  write(timeline["states"]);
  for (Json& section : timeline["sections"]) {
    Json& values = section["values"];
    write(values);
    Json begin = Json::array();
    Json end = Json::array();
    int at = 0;
    for (std::size_t i = 0; i < values.at("later").size(); ++i) {
      at += values.at("later").at(i).get<int>();
      begin.push_back(at);
      end.push_back(at + values.at("lives").at(i).get<int>());
    }
    values["begin"] = std::move(begin);
    values["end"] = std::move(end);
  }
  return timeline;
}

std::size_t index_in(const std::vector<std::string>& list, std::string_view name) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list.at(i) == name) return i;
  }
  ADD_FAILURE() << name << " is not there";
  return 0;
}

const Json& section_of(const Json& timeline, std::string_view name) {
  for (const Json& section : timeline.at("sections")) {
    if (section.at("section") == name) return section;
  }
  throw std::runtime_error("no such section");
}

TEST(Timeline, EveryNodeHasItsOpLayerAndPhase) {
  const Json timeline = timeline_json(tiny_plan());
  const Json& micro = section_of(timeline, "micro");
  EXPECT_EQ(micro.at("runs"), 2);
  EXPECT_EQ(section_of(timeline, "update").at("runs"), 1);
  const Json& nodes = micro.at("nodes");
  for (const char* column : {"op", "layer", "phase"}) EXPECT_EQ(nodes.at(column).size(), 10U) << column;
  const auto name = [&](const char* names, const char* column, std::size_t node) {
    const std::size_t index = nodes.at(column).at(node).get<std::size_t>();
    return names == std::string_view("layers") ? Json(names_of(timeline, timeline.at(names)).at(index))
                                               : timeline.at(names).at(index);
  };
  EXPECT_EQ(name("ops", "op", 6), "linear_grad_weight");
  EXPECT_EQ(name("layers", "layer", 6), "head.fc");
  EXPECT_EQ(name("phases", "phase", 6), "backward");
  EXPECT_EQ(name("phases", "phase", 0), "forward");
}

TEST(Timeline, StatesLieWhereThePlanPutsThem) {
  const Plan plan = tiny_plan();
  const Json timeline = written_out(timeline_json(plan));
  const Json& states = timeline.at("states");
  const std::size_t weight = index_in(names_of(timeline, states), "head.fc.weight");
  EXPECT_EQ(states.at("bytes").at(weight), 256);
  EXPECT_EQ(states.at("offset").at(weight), plan.state_offsets[weight].count());
  EXPECT_EQ(timeline.at("classes").at(states.at("class").at(weight).get<std::size_t>()), "model");
  const std::vector<std::string> layers = names_of(timeline, timeline.at("layers"));
  EXPECT_EQ(layers.at(states.at("layer").at(weight).get<std::size_t>()), "head.fc");
  EXPECT_EQ(layers.at(states.at("layer").at(index_in(names_of(timeline, states), "head.fc.weight.momentum")).get<std::size_t>()),
            "head.fc");
  EXPECT_EQ(timeline.at("persistent_bytes"), plan.persistent_bytes.count());
}

TEST(Timeline, AValueThatTakesAnothersBytesBeginsWhereThatOneEnds) {
  const Json timeline = written_out(timeline_json(tiny_plan()));
  const Json& values = section_of(timeline, "micro").at("values");
  const std::size_t fc = index_in(names_of(timeline, values), "body.one.fc");
  const std::size_t relu = index_in(names_of(timeline, values), "body.one.relu");
  EXPECT_EQ(values.at("begin").at(fc), 0);
  EXPECT_EQ(values.at("end").at(fc), 1);
  EXPECT_EQ(values.at("begin").at(relu), 1);
  EXPECT_EQ(values.at("end").at(relu), 9);  // its gradient, node 8, is the last to read it
  EXPECT_EQ(values.at("offset").at(fc), values.at("offset").at(relu));
  const std::size_t workspace = index_in(names_of(timeline, values), "ws");
  EXPECT_EQ(values.at("begin").at(workspace), 6);
  EXPECT_EQ(values.at("end").at(workspace), 7);
  EXPECT_EQ(timeline.at("classes").at(values.at("class").at(workspace).get<std::size_t>()), "workspace");
}

TEST(Timeline, TheBeginningIsThereOnlyWhereItNeedsMost) {
  const auto sections_with_init = [](const std::string& size) {
    const std::string init =
        "section init\n  metrics@1 = fill(metrics@0) {value=0.0} : state using plain_fill workspace %scratch u8[" + size +
        "] ; init metrics\nsection micro\n";
    std::vector<std::string> names;
    const Json timeline = timeline_json(plan_of(replaced(tiny_text(), "section micro\n", init)));
    for (const Json& section : timeline.at("sections")) {
      names.push_back(section.at("section"));
    }
    return names;
  };
  EXPECT_EQ(sections_with_init("64"), (std::vector<std::string>{"micro", "update"}));
  EXPECT_EQ(sections_with_init("9000"), (std::vector<std::string>{"init", "micro", "update"}));
}

// Readers may count characters where this counts bytes.
TEST(Timeline, NamesThatDifferAfterALetterOfSeveralBytesShareNoPartOfIt) {
  Plan plan = tiny_plan();
  plan.program.states.at(3).name = "bé.weight";
  plan.program.states.at(4).name = "bè.weight";
  const Json timeline = timeline_json(plan);
  std::vector<std::string> expected;
  for (const State& state : plan.program.states) expected.push_back(state.name);
  EXPECT_EQ(names_of(timeline, timeline.at("states")), expected);
  EXPECT_EQ(timeline.at("states").at("prefix").at(4), 1);
}

// The page adds up what is alive; it must come to what the moments say.
TEST(Timeline, StatesAndValuesAddUpToTheBytesAliveByClass) {
  const Plan plan = tiny_plan();
  const Json timeline = written_out(timeline_json(plan));
  for (const SectionMoments& moments : moments_of_step(plan)) {
    const Json& values = section_of(timeline, name_of(plan.program.sections[moments.section].kind)).at("values");
    for (std::size_t node = 0; node < moments.alive.size(); ++node) {
      ByClass sum = states_by_class(plan.program);
      for (std::size_t v = 0; v < values.at("bytes").size(); ++v) {
        if (values.at("begin").at(v).get<std::size_t>() > node || values.at("end").at(v).get<std::size_t>() <= node) continue;
        sum[values.at("class").at(v).get<std::size_t>()] += Bytes(values.at("bytes").at(v).get<std::int64_t>());
      }
      EXPECT_EQ(sum, moments.alive[node]) << "section " << moments.section << ", node " << node;
    }
  }
}

}  // namespace
}  // namespace snug::report
