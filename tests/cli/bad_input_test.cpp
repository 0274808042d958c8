// Bad input gets one sentence on standard error and exit code 2. The sentences are in messages.txt.

#include <sstream>

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "run_snug.h"
#include <snug/error.h>

namespace snug::cli {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

TEST(BadInput, AMistypedPassIsNamedWithTheNearest) {
  const Ended ended = run_snug({"plan", "small-cnn", "--dump-after", "share-byte"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(ended.err.ends_with("; did you mean share_bytes?\n")) << ended.err;
}

// What the library refuses comes through in its own words.
TEST(BadInput, AnUnknownModelIsNamedWithTheKnownOnes) {
  std::string message;
  try {
    frontend::build_zoo_model("resnet-19", {});
  } catch (const UserError& error) {
    message = error.what();
  }
  const Ended ended = run_snug({"plan", "resnet-19", "--batch", "4"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.err, "snug: " + message + "\n");
  EXPECT_NE(ended.err.find("resnet-19"), std::string::npos);
  EXPECT_EQ(ended.out, "");
}

TEST(BadInput, ThePlansOwnRefusalsEndWithTwoAndNameTheThing) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"plan wrn-29-2 --batch 4", "'wrn-29-2'"},
      {"plan vgg-16 --batch 4 --image-size 8", "'features."},
      {"plan resnet-50 --batch 1000000000", "2^48"},
      {"plan small-cnn --batch 4 --freeze nobody", "'nobody'"},
      {"plan small-cnn --batch 4 --disable-pass nothing", "'nothing'"},
      {"plan small-cnn --batch 4 --disable-pass select_kernels", "'select_kernels'"},
      {"plan small-cnn --batch 4 --dump-after nothing", "'nothing'"},
  };
  for (const auto& [arguments, named] : cases) {
    const Ended ended = run_snug(split(arguments));
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_EQ(ended.out, "") << arguments;
    EXPECT_TRUE(ended.err.starts_with("snug: ")) << ended.err;
    EXPECT_NE(ended.err.find(named), std::string::npos) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  }
}

}  // namespace
}  // namespace snug::cli
