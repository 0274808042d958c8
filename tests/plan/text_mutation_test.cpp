// Programs as text may come from anywhere. Thousands of damaged ones, the same on every machine: parsing answers with a program
// or a UserError, the verifier with a verdict, and what it calls sound goes through every later stage. Worth most under the
// sanitizers.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "frontend/graph_builder.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/model/add_update.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"

namespace snug::testing {
namespace {

// One layer of nearly every kind.
Program every_layer() {
  frontend::GraphBuilder b("every", 2);
  ValueId x = b.images({.height = 8, .width = 8, .crop_padding = 1});
  x = b.conv2d("c1", x, {.out_channels = 4, .padding = 1, .bias = true});
  const ValueId y = b.max_pool("p1", b.relu("r1", b.batch_norm("n1", x, {.group_size = 1})));
  x = b.add("a1", b.group_norm("n2", y, 2), b.shortcut("s1", x, 4, 2));
  x = b.avg_pool("p2", b.dropout("d1", x, 0.25), {.kernel = 3, .stride = 1, .padding = 1});
  x = b.linear("l1", b.flatten("f1", b.relu("r2", x)), 6);
  b.softmax_cross_entropy(b.linear("l2", b.batch_norm("n3", x), 3), 0.1);
  return std::move(b).finish();
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t i = 1 + below(3); i-- > 0 && !text.empty();) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void change(std::string& text) {
    const std::size_t at = below(text.size());
    switch (below(9)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text[at] = printable();
        break;
      case 2:
        text.insert(at, 1, printable());
        break;
      case 3:
        text.erase(at, 1 + below(8));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        swap_lines(text);
        break;
      case 6:
        replace_line(text);
        break;
      case 7:
        replace_number(text);
        break;
      default:
        replace_word(text);
        break;
    }
  }

  char printable() { return "%@=(){}[],:;/x.-_ \n019eanw"[below(27)]; }

  // [begin, end) of the line around a random place, its newline included.
  std::pair<std::size_t, std::size_t> line(const std::string& text) {
    const std::size_t at = below(text.size());
    const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return {begin, std::min(text.find('\n', at), text.size() - 1) + 1};
  }

  void swap_lines(std::string& text) {
    auto [a, a_end] = line(text);
    auto [b, b_end] = line(text);
    if (a > b) {
      std::swap(a, b);
      std::swap(a_end, b_end);
    }
    if (a == b) return;
    text = text.substr(0, a) + text.substr(b, b_end - b) + text.substr(a_end, b - a_end) + text.substr(a, a_end - a) +
           text.substr(b_end);
  }

  // By another line: now that one is there twice, and this one is gone.
  void replace_line(std::string& text) {
    const auto [a, a_end] = line(text);
    const auto [b, b_end] = line(text);
    text.replace(a, a_end - a, text.substr(b, b_end - b));
  }

  void replace_number(std::string& text) {
    const std::size_t begin = text.find_first_of("0123456789", below(text.size()));
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    static const std::vector<std::string> kNumbers{"0",
                                                   "1",
                                                   "2",
                                                   "3",
                                                   "-1",
                                                   "1048576",
                                                   "1048577",
                                                   "281474976710656",
                                                   "9223372036854775807",
                                                   "-9223372036854775808",
                                                   "18446744073709551616",
                                                   "1.5",
                                                   "1e308",
                                                   "1e-320",
                                                   "nan",
                                                   "4294967296"};
    text.replace(begin, end - begin, kNumbers[below(kNumbers.size())]);
  }

  std::pair<std::size_t, std::size_t> word(const std::string& text) {
    static constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.%@0123456789";
    const std::size_t begin = text.find_first_of(kLetters, below(text.size()));
    if (begin == std::string::npos) return {0, 0};
    return {begin, std::min(text.find_first_not_of(kLetters, begin), text.size())};
  }

  void replace_word(std::string& text) {
    const auto [a, a_end] = word(text);
    const auto [b, b_end] = word(text);
    text.replace(a, a_end - a, text.substr(b, b_end - b));
  }

  std::mt19937_64 random_;
};

bool shares_bytes(const Program& program) {
  for (const Section& section : program.sections) {
    for (const Value& value : section.values) {
      if (value.shares.valid()) return true;
    }
  }
  return false;
}

struct Outcome {
  int refused = 0;
  int unsound = 0;
  int sound = 0;
};

// Everything but a UserError escapes, and fails the test.
void judge(const std::string& text, const Backend& backend, Outcome& outcome) {
  Program program;
  try {
    program = parse_program(text, ops::find);
  } catch (const UserError&) {
    ++outcome.refused;
    return;
  }
  const std::string printed = print(program);
  ASSERT_EQ(print(parse_program(printed, ops::find)), printed);
  if (find_defect(program)) {
    ++outcome.unsound;
    return;
  }
  ++outcome.sound;
  try {
    for (const Section& section : program.sections) {
      for (const Node& node : section.nodes) ASSERT_GE(count_flops(section, node), 0);
    }
    // Passes decide about sharing themselves, and come before it.
    std::vector<PassTiming> timings;
    if (!shares_bytes(program)) program = run_passes(std::move(program), memory_passes(), {.backend = backend}, {}, timings);
    place(std::move(program));
  } catch (const UserError&) {
    // too large to count or to plan
  }
}

void mutate_many(const std::string& text, int times, std::uint64_t seed) {
  const AcceptingBackend backend({.workspace = {{"conv2d", Bytes(64)}}, .refuses_accumulation = {"conv2d_grad_weight"}});
  ASSERT_EQ(find_defect(parse_program(text, ops::find)), std::nullopt);
  Mutator mutator(seed);
  Outcome outcome;
  for (int i = 0; i < times; ++i) {
    const std::string mutated = mutator.mutate(text);
    ASSERT_NO_THROW(judge(mutated, backend, outcome)) << "mutation " << i << ":\n" << mutated;
    if (::testing::Test::HasFatalFailure()) FAIL() << "mutation " << i << ":\n" << mutated;
  }
  // All three must happen, or the mutations are too tame or too wild to find anything.
  EXPECT_GT(outcome.refused, times / 20);
  EXPECT_GT(outcome.unsound, times / 50);
  EXPECT_GT(outcome.sound, times / 50);
}

TEST(MutatedText, OfALoweredProgramIsParsedOrRefused) {
  mutate_many(print(add_update(differentiate(every_layer()), {})), 4000, 1);
}

TEST(MutatedText, OfACompiledProgramIsParsedOrRefused) {
  std::string text;
  {
    const AcceptingBackend backend({.workspace = {{"conv2d", Bytes(64)}}});
    text = print(compile(every_layer(), backend).program);
  }
  mutate_many(text, 4000, 2);
}

TEST(MutatedText, OfAProgramInTwoMemoriesIsParsedOrRefused) {
  mutate_many(
      "program p batch 4 microbatch 2\n"
      "state w : f32[4x4] parameter trainable\n"
      "state h : f32[4x4] optimizer host\n"
      "state scalars : u8[64] scalar\n"
      "section micro\n"
      "  %a = relu(w@0) : f32[4x4] activation ; forward a\n"
      "  %b = copy_to_space(%a) {host=1} : f32[4x4] activation host ; forward a\n"
      "  %c = copy_to_space(%b) {host=1} : f32[4x4] activation host ; forward a\n"
      "  %d = copy_to_space(%c) {host=0} : f32[4x4] activation ; backward a\n"
      "  %e = add(%d, %a) : f32[4x4] activation ; backward a\n"
      "  h@1 = copy_to_space(%e) {host=1} : state ; backward a\n"
      "section update\n"
      "  %g = copy_to_space(h@0) {host=0} : f32[4x4] gradient ; update\n"
      "  w@1 = copy_to_space(%g) {host=0} : state ; update\n",
      4000, 4);
}

TEST(MutatedText, OfAShortProgramIsParsedOrRefused) {
  mutate_many(
      "program p batch 4 microbatch 2\n"
      "state w : f32[4x4]/channels_last parameter trainable\n"
      "state s : f32[4x4] optimizer\n"
      "state o : bf16[4x4]/opaque(ABcd,99) optimizer\n"
      "state scalars : u8[64] scalar\n"
      "section micro\n"
      "  %a = relu(w@0) : f32[4x4] activation using k workspace %s u8[64] ; forward a\n"
      "  %b = reshape(%a) {shape=[2,8]} : f32[2x8] activation in %a ; forward b\n"
      "  %c = dropout(%b, scalars@0) {key=1, probability=0.5} : f32[2x8] activation in %b ; forward c\n"
      "  %r = reshape(%c) {shape=[8,2]} : f32[8x2] activation in %c ; forward r\n"
      "  %t = reshape(%r) {shape=[1,4,2,2]} : f32[1x4x2x2] activation in %r ; forward t\n"
      "  %d = linear_grad_weight(w@0, w@0) : f32[4x4] gradient ; backward w\n"
      "  w@1 = add(w@0, %d) : state ; backward w\n"
      "section update\n"
      "  %g = relu(w@0) : f32[4x4] gradient ; update\n"
      "  w@1, %h, s@1 = sgd(w@0, %g, scalars@0, s@0) {momentum=0.9, nesterov=0, weight_decay=0.0} : state, f32[4x4] gradient in "
      "%g, "
      "state ; update\n",
      4000, 3);
}

}  // namespace
}  // namespace snug::testing
