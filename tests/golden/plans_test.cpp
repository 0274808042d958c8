// Plans that a change of structure must not change: bytes, FLOPs, the list of nodes with their kernels, and where every value
// lies. Each case is a command, `snug plan FLAGS --threads 2`, and plans.txt holds what it gave when it was first written down.
// The CPU's kernels are those of one instruction set, so that every processor with AVX2 gives the same plan.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "api/prepare.h"
#include "base/checksum.h"
#include "cli/recipe_flags.h"
#include "support/accepting_backend.h"

namespace snug::testing {
namespace {

struct Case {
  std::string_view backend;  // accepting: a kernel without workspace for every op, and no device
  std::string_view flags;
};

// Reasons to be here: every family of models, precision, strategy, method and way to be refused a byte, alone and together.
constexpr Case kCases[] = {
    {"accepting", "small-cnn --batch 100"},
    {"accepting", "wrn-10-1 --batch 32"},
    {"accepting", "wrn-28-2 --batch 100"},
    {"accepting", "preresnet-20 --batch 64"},
    {"accepting", "preresnet-110 --batch 16"},
    {"accepting", "resnet-18 --batch 8 --image-size 64"},
    {"accepting", "resnet-50 --batch 8 --image-size 64"},
    {"accepting", "vgg-16 --batch 4 --image-size 64"},
    {"accepting", "wrn-28-2 --batch 100 --microbatch 25"},
    {"accepting", "wrn-28-2 --batch 100 --precision bf16"},
    {"accepting", "wrn-28-2 --batch 100 --precision fp16"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint no-bn"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint every-3"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint sqrt"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint log"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint chen"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint residual-1"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint residual-2*"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint greedy:30MB"},
    {"accepting", "wrn-28-2 --batch 100 --checkpoint optimal:30MB"},
    {"accepting", "resnet-50 --batch 8 --image-size 64 --checkpoint optimal:10MB"},
    {"accepting", "wrn-28-2 --batch 100 --compress 4"},
    {"accepting", "wrn-28-2 --batch 100 --compress 2 --checkpoint no-bn"},
    {"accepting", "wrn-28-2 --batch 100 --nonzero 0.3"},
    {"accepting", "wrn-28-2 --batch 100 --nonzero 0.1 --precision fp16 --microbatch 4"},
    {"accepting", "wrn-28-2 --batch 100 --momentum-bits 8"},
    {"accepting", "wrn-28-2 --batch 100 --nonzero 0.3 --momentum-bits 8"},
    {"accepting", "wrn-28-2 --batch 100 --drop-gradients --nesterov no"},
    {"accepting", "wrn-28-2 --batch 100 --fuse-update yes"},
    {"accepting", "resnet-18 --batch 8 --image-size 64 --clip-norm 1"},
    {"accepting", "wrn-28-2 --batch 100 --momentum 0 --nesterov no"},
    {"accepting", "wrn-28-2 --batch 100 --statistics-group 10"},
    {"accepting", "resnet-18 --batch 8 --image-size 64 --freeze layer1 --freeze conv1"},
    {"accepting", "wrn-28-2 --batch 100 --budget 60MB"},
    {"accepting", "wrn-28-2 --batch 100 --budget 24MB"},
    {"accepting", "wrn-28-2 --batch 100 --budget 12MB --allow precision,compressed,sparse"},
    {"accepting", "wrn-28-2 --batch 100 --disable-pass share_bytes --disable-pass accumulate_in_place"},
    {"cpu", "small-cnn --batch 100"},
    {"cpu", "small-cnn --batch 7"},
    {"cpu", "small-cnn --batch 100 --budget 3MB"},
    {"cpu", "wrn-10-1 --batch 32"},
    {"cpu", "wrn-28-2 --batch 100"},
    {"cpu", "preresnet-20 --batch 64"},
    {"cpu", "preresnet-110 --batch 16 --checkpoint sqrt"},
    {"cpu", "resnet-18 --batch 8 --image-size 64"},
    {"cpu", "resnet-50 --batch 8 --image-size 64"},
    {"cpu", "vgg-16 --batch 4 --image-size 64"},
    {"cpu", "wrn-28-2 --batch 100 --precision bf16"},
    {"cpu", "wrn-28-2 --batch 100 --precision bf16 --rounding nearest --momentum-bits 8"},
    {"cpu", "wrn-28-2 --batch 100 --precision fp16"},
    {"cpu", "wrn-28-2 --batch 100 --precision fp16 --clip-norm 5"},
    {"cpu", "wrn-28-2 --batch 96 --microbatch 25 --checkpoint log"},
    {"cpu", "wrn-28-2 --batch 100 --checkpoint optimal:20MB"},
    {"cpu", "wrn-28-2 --batch 100 --checkpoint greedy:20MB"},
    {"cpu", "resnet-50 --batch 8 --image-size 64 --checkpoint residual-1*"},
    {"cpu", "wrn-28-2 --batch 100 --compress 8"},
    {"cpu", "wrn-28-2 --batch 100 --compress 4 --precision bf16 --checkpoint no-bn"},
    {"cpu", "wrn-28-2 --batch 100 --nonzero 0.3"},
    {"cpu", "wrn-28-2 --batch 100 --nonzero 0.3 --precision bf16 --microbatch 10 --budget 6.7MB"},
    {"cpu", "wrn-28-2 --batch 100 --nonzero 0.2 --momentum-bits 8 --compress 4"},
    {"cpu", "wrn-28-2 --batch 100 --momentum-bits 8 --checkpoint sqrt"},
    {"cpu", "wrn-28-2 --batch 100 --drop-gradients --nesterov no --precision bf16"},
    {"cpu", "wrn-28-2 --batch 100 --microbatch 10 --drop-gradients --nesterov no"},
    {"cpu", "wrn-28-2 --batch 100 --fuse-update yes"},
    {"cpu", "resnet-18 --batch 8 --image-size 64 --prepack-weights yes"},
    {"cpu", "resnet-18 --batch 8 --image-size 64 --fuse-update yes --prepack-weights yes"},
    {"cpu", "wrn-28-2 --batch 100 --statistics-group 10 --microbatch 20"},
    {"cpu", "resnet-18 --batch 8 --image-size 64 --freeze layer1 --freeze layer2 --clip-norm 1"},
    {"cpu", "wrn-28-2 --batch 100 --budget 60MB"},
    {"cpu", "wrn-28-2 --batch 100 --budget 24MB"},
    {"cpu", "wrn-28-2 --batch 100 --budget 8MB --allow precision,compressed,sparse --min-microbatch 4"},
    {"cpu", "wrn-28-2 --batch 100 --workspace-limit 200KB"},
    {"cpu", "resnet-18 --batch 8 --image-size 64 --budget 190MB --min-microbatch 1"},
    {"cpu", "resnet-18 --batch 16 --image-size 64 --budget 100MB --allow precision --min-microbatch 1"},
    {"cpu", "wrn-10-1 --batch 32 --momentum 0 --nesterov no"},
};

// What states may have grown by since plans.txt was written; 0 so far.
constexpr Bytes kAnnouncedBytes(0);

std::string digest(const std::string& text) {
  Crc64 crc;
  crc.update(std::as_bytes(std::span(text)));
  return fmt::format("{:016x}", crc.value());
}

// One node a line. Names of values and attributes are not in it: what they mean is held by the bits (bits_test.cpp).
std::string node_list(const Section& section) {
  std::string list;
  const auto put = [&](ValueId id) {
    const Value& value = section.value(id);
    list += fmt::format(" {} {}{}", name_of(value.role), to_string(value.type), value.shares.valid() ? " shared" : "");
  };
  for (const Node& node : section.nodes) {
    list += fmt::format("{} {} {} {}:", name_of(node.phase), node.layer, node.op->name, node.kernel);
    for (const ValueId id : node.inputs) put(id);
    list += " ->";
    for (const ValueId id : node.outputs) put(id);
    if (node.workspace.valid()) put(node.workspace);
    list += '\n';
  }
  return list;
}

// Where each node's operands lie above the states.
std::string place_list(const Plan& plan, std::size_t at) {
  const Section& section = plan.program.sections[at];
  std::string list;
  for (const Node& node : section.nodes) {
    std::vector<ValueId> operands = node.inputs;
    operands.insert(operands.end(), node.outputs.begin(), node.outputs.end());
    if (node.workspace.valid()) operands.push_back(node.workspace);
    for (const ValueId id : operands) {
      if (!section.value(id).is_state()) list += fmt::format(" {}", (plan.offset_of(at, id) - plan.persistent_bytes).count());
    }
  }
  return list;
}

// As plans.txt calls it: when it was written, only rewiring was periodic, and the section was called so.
std::string_view section_name(SectionKind kind) { return kind == SectionKind::periodic ? "rewire" : name_of(kind); }

std::string summary(const Plan& plan) {
  std::int64_t flops = 0;
  std::map<std::string, int> uses;
  std::string sections;
  for (std::size_t at = 0; at < plan.sections.size(); ++at) {
    const Section& section = plan.program.sections[at];
    for (const Node& node : section.nodes) {
      flops += count_flops(section, node);
      ++uses[fmt::format("{}/{}", node.op->name, node.kernel)];
    }
    sections += fmt::format("  {}: {} nodes {}, {} bytes, at least {}, placed {}\n", section_name(section.kind),
                            section.nodes.size(), digest(node_list(section)), plan.sections[at].height.count(),
                            plan.sections[at].bound.count(), digest(place_list(plan, at)));
  }
  std::string text =
      fmt::format("  microbatch {}, {} bytes, {} of them states, {} FLOPs in all sections\n", plan.program.microbatch,
                  (plan.planned_peak_bytes - kAnnouncedBytes).count(), (plan.persistent_bytes - kAnnouncedBytes).count(), flops);
  text += sections;
  for (const auto& [use, count] : uses) text += fmt::format("  {} {}\n", count, use);
  return text;
}

Plan plan_of(const Case& golden) {
  CLI::App app;
  cli::Flags flags;
  flags.command = "plan";
  cli::add_plan_flags(app, flags);
  app.parse(fmt::format("{} --threads 2", golden.flags));
  const settings::Recipe recipe = cli::recipe_of(flags);
  FitRequest request = fit_request(recipe, random_description(recipe));
  request.options.passes.disabled = flags.disabled_passes;
  if (golden.backend == "cpu") return fit(request, open_backend(recipe)).plan;
  return fit(request, AcceptingBackend()).plan;
}

// As plans.txt calls it: when it was written, these flags named passes.
std::string title_of(const Case& golden) {
  std::string title = fmt::format("{}: {}", golden.backend, golden.flags);
  for (const auto& [now, then] : {std::pair<std::string, std::string>("--fuse-update yes", "--enable-pass fuse_update"),
                                  {"--prepack-weights yes", "--enable-pass prepack_weights"}}) {
    if (const std::size_t at = title.find(now); at != std::string::npos) title.replace(at, now.size(), then);
  }
  return title;
}

const char* kGoldens = SNUG_TEST_SOURCE_DIR "/golden/plans.txt";

// By title: the lines below it.
std::map<std::string, std::string> read_goldens() {
  std::map<std::string, std::string> goldens;
  std::ifstream file(kGoldens);
  std::string title;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(' '))
      goldens[title] += line + '\n';
    else
      title = line;
  }
  return goldens;
}

class GoldenPlan : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1); }
};

TEST_P(GoldenPlan, IsAsItWas) {
  const std::string title = title_of(GetParam());
  const std::string now = summary(plan_of(GetParam()));
  if (const char* file = std::getenv("SNUG_WRITE_GOLDENS")) std::ofstream(file, std::ios::app) << title << '\n' << now;
  const std::map<std::string, std::string> goldens = read_goldens();
  ASSERT_TRUE(goldens.contains(title)) << title << " is not in " << kGoldens;
  EXPECT_EQ(now, goldens.at(title)) << title;
}

INSTANTIATE_TEST_SUITE_P(Plans, GoldenPlan, ::testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = title_of(test.param);
  for (char& c : name) c = c == '*' ? 's' : std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace snug::testing
