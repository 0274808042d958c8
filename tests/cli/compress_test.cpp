// Activations and momentum in few bits, as a user asks for them.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_snug.h"
#include "snapshot_tensors.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

Json json_of(const std::vector<std::string>& arguments) {
  const Ended ended = run_snug(arguments);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return Json::parse(ended.out, nullptr, false);
}

TEST(Compress, DigitsAreLearntAsWellWithActivationsInFourBitsOrMomentumInEight) {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train", "small-cnn",  "--epochs", "5",         "--batch", "50",     "--learning-rate",
                                       "0.05",  "--schedule", "cosine",   "--threads", "1",       "--json", "--out"};
    arguments.push_back((folder / name).string());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  const Json plain = train("plain", {}), packed = train("packed", {"--compress", "4"});
  EXPECT_EQ(plain["compress_bits"], nullptr);
  EXPECT_EQ(packed["compress_bits"], 4);
  EXPECT_EQ(packed["measured_peak_bytes"], packed["planned_peak_bytes"]);
  EXPECT_EQ(packed["plain_peak_bytes"], plain["planned_peak_bytes"]);
  EXPECT_LT(packed["planned_peak_bytes"].get<double>(), plain["planned_peak_bytes"].get<double>());
  EXPECT_GT(plain["test_accuracy"].get<double>(), 0.7);
  EXPECT_NEAR(packed["test_accuracy"].get<double>(), plain["test_accuracy"].get<double>(), 0.05);
  EXPECT_NEAR(packed["train_loss"].get<double>(), plain["train_loss"].get<double>(), 0.1);

  const Json quantized = train("quantized", {"--momentum-bits", "8"});
  EXPECT_EQ(quantized["measured_peak_bytes"], quantized["planned_peak_bytes"]);
  EXPECT_LT(quantized["by_class"]["optimizer"].get<double>(), 0.4 * plain["by_class"]["optimizer"].get<double>());
  EXPECT_NEAR(quantized["test_accuracy"].get<double>(), plain["test_accuracy"].get<double>(), 0.05);
  EXPECT_NEAR(quantized["train_loss"].get<double>(), plain["train_loss"].get<double>(), 0.1);
}

TEST(Compress, TheSolverTakesItWhenItIsAllowedAndSaysSo) {
  const std::vector<std::string> ask{"plan", "wrn-10-1", "--batch", "40", "--threads", "1", "--json", "--explain"};
  const auto plan = [&](const std::string& allow, std::int64_t budget) {
    std::vector<std::string> arguments = ask;
    arguments.insert(arguments.end(), {"--allow", allow, "--budget", std::to_string(budget) + "B"});
    return run_snug(arguments);
  };
  const std::int64_t all = json_of(ask)["planned_peak_bytes"].get<std::int64_t>();
  const Json exact = Json::parse(plan("exact", all).out);
  const std::int64_t budget = exact["frontier"][0]["bytes"].get<std::int64_t>() - 1;
  EXPECT_EQ(plan("exact", budget).exit_code, 3);
  const Ended found = plan("exact,compressed", budget);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json json = Json::parse(found.out);
  EXPECT_EQ(json["compress_bits"], 4);
  EXPECT_EQ(json["frontier"][0]["compress_bits"], 4);
  bool says_so = false;
  for (const Json& method : json["methods"]) says_so = says_so || method["method"] == "activations kept in 4 bits";
  EXPECT_TRUE(says_so) << json["methods"];
}

// Plans on file and runs that go on are told apart from other models' by what training computes, not by how it is kept.
TEST(Compress, SmallerFormsGoThroughPlansOnFileAndResumedRuns) {
  struct Form {
    std::vector<std::string> computes, keeps;
    Json compress_bits = nullptr;
  };
  const std::vector<Form> forms{{.computes = {}, .keeps = {"--compress", "4"}, .compress_bits = 4},
                                {.computes = {"--nesterov", "no"}, .keeps = {"--drop-gradients"}},
                                {.computes = {"--nesterov", "no", "--precision", "bf16"}, .keeps = {"--drop-gradients"}},
                                {.computes = {"--momentum-bits", "8"}, .keeps = {}}};
  for (const Form& form : forms) {
    const TemporaryFolder folder;
    const std::string plan = (folder / "plan").string();
    const auto with = [](std::vector<std::string> arguments, const std::vector<std::string>& more) {
      arguments.insert(arguments.end(), more.begin(), more.end());
      return arguments;
    };
    const std::vector<std::string> computes = with({"small-cnn", "--batch", "20", "--threads", "1"}, form.computes);
    const std::vector<std::string> keeps = with({"--microbatch", "4"}, form.keeps);
    SCOPED_TRACE(Json(with(computes, keeps)).dump());
    ASSERT_EQ(run_snug(with(with({"plan", "--save", plan}, computes), keeps)).exit_code, 0);
    // As the plan on file says, in one go and in two parts, and as flags say.
    const auto train = [&](const std::string& name, const std::string& steps, const std::vector<std::string>& how) {
      const Json json =
          json_of(with(with({"train", "--json", "--steps", steps, "--out", (folder / name).string()}, computes), how));
      EXPECT_EQ(json["measured_peak_bytes"], json["planned_peak_bytes"]);
      EXPECT_EQ(json["compress_bits"], form.compress_bits);
    };
    train("whole", "6", {"--plan", plan});
    train("flags", "6", keeps);
    train("parts", "3", {"--plan", plan});
    // The run's recipe says what its plan does.
    const std::string recipe = text_of(folder / "whole" / "recipe.toml");
    EXPECT_EQ(recipe.find("compress = 4") != std::string::npos, form.compress_bits == 4) << recipe;
    EXPECT_EQ(recipe.find("drop_gradients = true") != std::string::npos,
              form.keeps == std::vector<std::string>{"--drop-gradients"})
        << recipe;
    const auto whole = tensors_of(folder / "whole");
    ASSERT_FALSE(whole.empty());
    EXPECT_EQ(tensors_of(folder / "flags"), whole);
    EXPECT_NE(tensors_of(folder / "parts"), whole);
    // Only the length is another.
    std::ofstream(folder / "parts" / "recipe.toml") << std::ifstream(folder / "whole" / "recipe.toml").rdbuf();
    const Ended resumed = run_snug({"train", "--resume", "--out", (folder / "parts").string()});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(tensors_of(folder / "parts") == whole);
  }
  EXPECT_TRUE(support::mentions(run_snug({"plan", "small-cnn", "--batch", "8", "--drop-gradients"}).err,
                                {"'drop_gradients'", "false", "--nesterov"}));
}

TEST(Compress, APlanOnFileDecidesWhetherGradientsAreKept) {
  const TemporaryFolder folder;
  const std::string plan = (folder / "plan").string();
  EXPECT_EQ(run_snug({"plan", "small-cnn", "--batch", "20", "--threads", "1", "--nesterov", "no", "--save", plan}).exit_code, 0);
  const std::vector<std::string> how{"--threads", "1", "--steps", "1", "--plan", plan, "--out", (folder / "run").string()};
  std::vector<std::string> given{"train", "small-cnn", "--batch", "20", "--nesterov", "no", "--drop-gradients"};
  given.insert(given.end(), how.begin(), how.end());
  const Ended refused = run_snug(given);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(support::mentions(refused.err, {plan, "leave out --drop-gradients"}));

  const std::string recipe = (folder / "recipe.toml").string();
  std::ofstream(recipe) << "model = \"small-cnn\"\nbatch = 20\n[optimizer]\nnesterov = false\ndrop_gradients = true\n";
  std::vector<std::string> from_recipe{"train", recipe};
  from_recipe.insert(from_recipe.end(), how.begin(), how.end());
  const Ended ended = run_snug(from_recipe);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::string said = text_of(folder / "run" / "recipe.toml");
  EXPECT_EQ(said.find("drop_gradients"), std::string::npos) << said;
}

TEST(Compress, OtherWidthsAndOtherDevicesAreRefused) {
  EXPECT_EQ(run_snug({"plan", "small-cnn", "--batch", "8", "--compress", "3"}).err,
            "snug: --compress is '3'; it can be 8, 4, 2\n");
  EXPECT_EQ(run_snug({"plan", "small-cnn", "--batch", "8", "--momentum-bits", "4"}).err,
            "snug: --momentum-bits is '4'; it can be 8, 32\n");
  const auto on_cuda = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"plan", "small-cnn", "--batch", "8", "--device", "cuda"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return run_snug(arguments).err;
  };
  EXPECT_TRUE(support::mentions(on_cuda({"--compress", "4"}), {"--compress", "CPU", "--device", "cpu"}));
  EXPECT_TRUE(support::mentions(on_cuda({"--allow", "compressed"}), {"--allow", "'compressed'", "CPU", "--device", "cpu"}));
  EXPECT_TRUE(support::mentions(on_cuda({"--momentum-bits", "8"}), {"--momentum-bits", "CPU", "--device", "cpu"}));
  EXPECT_TRUE(
      support::mentions(on_cuda({"--nesterov", "no", "--drop-gradients"}), {"--drop-gradients", "CPU", "--device", "cpu"}));
  EXPECT_TRUE(
      support::mentions(run_snug({"profile", "small-cnn", "--batch", "8", "--accounting", "paper", "--compress", "4"}).err,
                        {"--compress", "plans", "--accounting"}));
}

}  // namespace
}  // namespace snug::cli
