// Bad input gets one sentence on standard error, exit code 2 and, but for --json, nothing on standard output.

#include <sstream>

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "run_snug.h"
#include <snug/error.h>

namespace snug::cli {
namespace {

struct BadInput {
  std::string arguments;  // separated by spaces
  std::string message;    // without "snug: "
};

void PrintTo(const BadInput& input, std::ostream* os) { *os << "snug " << input.arguments; }

std::vector<std::string> split(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, GetOneSentenceAndExitCodeTwo) {
  const Ended ended = run_snug(split(GetParam().arguments));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.err, "snug: " + GetParam().message + "\n");
  EXPECT_TRUE(ended.out.empty() || GetParam().arguments.ends_with("--json")) << ended.out;
}

INSTANTIATE_TEST_SUITE_P(Commands, BadInputs,
                         testing::Values(BadInput{"",
                                                  "no command is given; the commands are train, plan, profile, sweep, eval, "
                                                  "predict, export, report and data (see 'snug "
                                                  "--help')"},
                                         BadInput{"help",
                                                  "there is no command 'help'; the commands are train, plan, profile, sweep, "
                                                  "eval, predict, export, report and data (see 'snug "
                                                  "--help')"},
                                         BadInput{"--bogus", "there is no flag '--bogus' (see 'snug --help')"},
                                         BadInput{"--bogus plan wrn-28-2 --batch 4",
                                                  "there is no flag '--bogus' (see 'snug --help')"}));

INSTANTIATE_TEST_SUITE_P(
    Arguments, BadInputs,
    testing::Values(
        BadInput{"plan", "'snug plan' needs a model, as in 'snug plan wrn-28-2 --batch 100' (see 'snug plan --help')"},
        BadInput{"profile --batch 4",
                 "'snug profile' needs a model, as in 'snug profile wrn-28-2 --batch 100' (see 'snug profile --help')"},
        BadInput{"plan wrn-28-2 vgg-16 --batch 4",
                 "'snug plan' was given 'vgg-16', an unexpected argument (see 'snug plan --help')"},
        BadInput{"plan wrn-28-2 --batch 4 --bogus 3", "'snug plan' has no flag '--bogus' (see 'snug plan --help')"},
        BadInput{"profile wrn-28-2 --batch 4 -x", "'snug profile' has no flag '-x' (see 'snug profile --help')"},
        BadInput{"plan wrn-28-2 --batch 4 --accounting real", "'snug plan' has no flag '--accounting' (see 'snug plan --help')"},
        BadInput{"plan wrn-28-2 --batch", "--batch needs a value"}, BadInput{"plan wrn-28-2 --batch=", "--batch needs a value"},
        BadInput{"plan wrn-28-2 --batch 4 --freeze", "--freeze needs a value"},
        BadInput{"plan wrn-28-2 --batch 4 --json=maybe", "--json takes no value; write --json alone"},
        BadInput{"plan wrn-28-2 --batch 4 --json=1", "--json takes no value; write --json alone"},
        BadInput{"plan wrn-28-2 --batch 4 --drop-gradients=x", "--drop-gradients takes no value; write --drop-gradients alone"},
        BadInput{"plan wrn-28-2 --batch 4 --explain=", "--explain takes no value; write --explain alone"},
        BadInput{"train --out x --resume=true", "--resume takes no value; write --resume alone"},
        BadInput{"eval x --best=yes", "--best takes no value; write --best alone"},
        BadInput{"--version=2", "--version takes no value; write --version alone"},
        BadInput{"plan small-cnn --batch 4 --dump-after share_bytes --json",
                 "--dump-after prints the program and nothing else; leave out --json"},
        BadInput{"plan small-cnn --batch 4 --dump-after share_bytes --kernels",
                 "--dump-after prints the program and nothing else; leave out --kernels"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, BadInputs,
    testing::Values(
        BadInput{"plan wrn-28-2 --batch many", "--batch takes a whole number from 1 to 1000000000, not 'many'"},
        BadInput{"plan wrn-28-2 --batch 0", "--batch takes a whole number from 1 to 1000000000, not '0'"},
        BadInput{"plan wrn-28-2 --batch -5", "--batch takes a whole number from 1 to 1000000000, not '-5'"},
        BadInput{"plan wrn-28-2 --batch 1e3", "--batch takes a whole number from 1 to 1000000000, not '1e3'"},
        BadInput{"plan wrn-28-2 --batch 99999999999999999999",
                 "--batch takes a whole number from 1 to 1000000000, not '99999999999999999999'"},
        BadInput{"plan wrn-28-2 --batch 4 --microbatch 1.5", "--microbatch takes a whole number from 1 to 1000000000, not '1.5'"},
        BadInput{"plan wrn-28-2 --batch 4 --microbatch 8", "--microbatch 8 is more than --batch 4; use at most that"},
        BadInput{"plan wrn-28-2 --batch 4 --classes 1", "--classes takes a whole number from 2 to 10000000, not '1'"},
        BadInput{"plan wrn-28-2 --batch 4 --image-size 0", "--image-size takes a whole number from 1 to 4096, not '0'"},
        BadInput{"plan wrn-28-2 --batch 4 --threads 0", "--threads takes a whole number from 1 to 1024, not '0'"}));

INSTANTIATE_TEST_SUITE_P(
    NotYet, BadInputs,
    testing::Values(BadInput{"plan wrn-28-2 --batch 4 --precision fp8", "--precision is 'fp8'; it can be fp32, fp16, bf16"},
                    BadInput{"plan wrn-28-2 --batch 4 --precision fp16 --fuse-update yes",
                             "pass 'fuse_update' makes each update during backward, but dynamic loss scaling looks at all "
                             "gradients before it; use fp32 or bf16, or leave out the pass"},
                    BadInput{"plan wrn-28-2 --batch 4 --nonzero 1.5", "--nonzero takes a number from 0.0001 to 1, not '1.5'"}));

INSTANTIATE_TEST_SUITE_P(
    PaperAccounting, BadInputs,
    testing::Values(
        BadInput{"profile wrn-28-2 --batch 4 --accounting paper --checkpoint sqrt",
                 "the paper has no checkpoint strategy 'sqrt'; use none, no-bn, every-M, residual-M or residual-M*, as in "
                 "residual-2*, or optimal:BYTES, as in optimal:30MB"},
        BadInput{"profile wrn-28-2 --batch 4 --accounting guess", "--accounting takes real or paper, not 'guess'"},
        BadInput{"profile vgg-16 --batch 4 --accounting paper --checkpoint residual-2",
                 "'vgg-16' has no residual units, so 'residual-2' is not possible; use none, no-bn or every-M"},
        BadInput{"profile wrn-28-2 --batch 4 --accounting paper --budget 4MB",
                 "--budget is about plans, and --accounting paper makes none; leave one of them out"},
        BadInput{"profile wrn-28-2 --batch 4 --accounting paper --precision bf16",
                 "--precision 'bf16' is not in the paper; use fp32 or fp16"},
        BadInput{"profile wrn-28-2 --batch 4 --accounting paper --nonzero 0",
                 "--nonzero takes a number from 0.0001 to 1, not '0'"}));

INSTANTIATE_TEST_SUITE_P(
    Checkpointing, BadInputs,
    testing::Values(
        BadInput{"plan wrn-28-2 --batch 4 --checkpoint root",
                 "checkpoint is 'root'; it can be none, no-bn, sqrt, log, chen, optimal or greedy (the last two also with a "
                 "limit, as in "
                 "optimal:6.7MB), or every-M, residual-M or residual-M* with a whole number M from 1"},
        BadInput{"profile wrn-28-2 --batch 4 --checkpoint every-0",
                 "checkpoint is 'every-0'; it can be none, no-bn, sqrt, log, chen, optimal or greedy (the last two also with a "
                 "limit, as in "
                 "optimal:6.7MB), or every-M, residual-M or residual-M* with a whole number M from 1"},
        BadInput{"plan small-cnn --batch 4 --checkpoint residual-2",
                 "'small-cnn' has no residual blocks, so checkpoint 'residual-2' is not possible; use sqrt, log or "
                 "every-M"}));

INSTANTIATE_TEST_SUITE_P(
    DidYouMean, BadInputs,
    testing::Values(
        BadInput{"trian", "there is no command 'trian'; did you mean train? (see 'snug --help')"},
        BadInput{"prof small-cnn", "there is no command 'prof'; did you mean profile? (see 'snug --help')"},
        BadInput{"--versoin", "there is no flag '--versoin'; did you mean --version? (see 'snug --help')"},
        BadInput{"train --step 5", "'snug train' has no flag '--step'; did you mean --steps? (see 'snug train --help')"},
        BadInput{"train small-cnn --lr=0.1",
                 "'snug train' has no flag '--lr=0.1'; did you mean --learning-rate? (see 'snug train --help')"},
        BadInput{"plan wrn-28-2 --batch-size 4",
                 "'snug plan' has no flag '--batch-size'; did you mean --batch? (see 'snug plan --help')"},
        BadInput{"eval x -best", "'snug eval' has no flag '-best'; did you mean --best? (see 'snug eval --help')"},
        BadInput{"plan small-cnn --precision bf-16", "--precision is 'bf-16'; it can be fp32, fp16, bf16; did you mean bf16?"},
        BadInput{"train small-cnn --schedule cos",
                 "--schedule is 'cos'; it can be constant, step, cosine, linear; did you mean cosine?"},
        BadInput{"plan small-cnn --device cud", "--device is 'cud'; it can be cpu, cuda; did you mean cuda?"},
        BadInput{"plan small-cnn --allow exact,compresed",
                 "--allow is 'compresed'; it can be exact, reassociated, microbatch, precision, compressed, sparse; did you mean "
                 "compressed?"},
        BadInput{"plan small-cnn --checkpoint optimum",
                 "checkpoint is 'optimum'; it can be none, no-bn, sqrt, log, chen, optimal or greedy (the last two also with a "
                 "limit, as in optimal:6.7MB), or every-M, residual-M or residual-M* with a whole number M from 1; did you mean "
                 "optimal?"},
        BadInput{"profile small-cnn --accounting papre", "--accounting takes real or paper, not 'papre'; did you mean paper?"},
        BadInput{"plan small-cnn --data embeded",
                 "data 'embeded' cannot be read: there is no such file or folder; give embedded, cifar10, embedded-text or the "
                 "path of a folder "
                 "or a text; did you mean embedded?"},
        BadInput{"plan resnet50",
                 "there is no model 'resnet50'; known are wrn-D-K, preresnet-D, resnet-18, resnet-50, vgg-16, small-cnn (D and "
                 "K are numbers, as in wrn-28-2); did you mean resnet-50?"}));

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
