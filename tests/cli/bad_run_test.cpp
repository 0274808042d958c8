// Bad flags, recipes, data, weights, snapshots and folders: the exact sentence and exit code of each. Paths are written {dir}.
#include <fstream>
#include <sstream>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using support::TemporaryFolder;

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the cases below are about; made once, since one of them is a trained run.
class Fixture {
 public:
  static const Fixture& get() {
    static const Fixture fixture;
    return fixture;
  }
  std::string dir() const { return folder_.path().string(); }

 private:
  Fixture() {
    const fs::path dir = folder_.path();
    fs::create_directories(dir / "empty");
    write(dir / "file", "text\n");
    write(dir / "typo.toml", "model = \"small-cnn\"\nbach = 3\n");
    write(dir / "syntax.toml", "model = \n");
    write(dir / "type.toml", "model = \"small-cnn\"\nbatch = \"ten\"\n");
    write(dir / "modelless.toml", "batch = 3\n");
    write(dir / "range.toml", "model = \"small-cnn\"\n[optimizer]\nmomentum = 1.5\n");
    write(dir / "both.toml", "model = \"small-cnn\"\nepochs = 1\nsteps = 2\n");

    const std::string record(3073, '\0');
    write(dir / "short_cifar/data_batch_1.bin", record.substr(0, 3000));
    write(dir / "short_cifar/test_batch.bin", record);
    write(dir / "odd_cifar/data_batch_1.bin", "\xFF" + record.substr(1));
    write(dir / "odd_cifar/test_batch.bin", record);
    write(dir / "untested_cifar/data_batch_1.bin", record);
    for (const char* split : {"train", "test"}) {
      for (const char* name : {"cat", "dog"}) {
        write(dir / "not_images" / split / name / "1.png", "not an image");
        write(dir / "cut_images" / split / name / "1.png", std::string("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16));
      }
    }
    write(dir / "one_class/train/cat/1.png", "x");
    write(dir / "one_class/test/cat/1.png", "x");

    const Ended trained = run_snug({"train", "small-cnn", "--batch", "20", "--steps", "2", "--threads", "1", "--snapshot-every",
                                    "1", "--out", (dir / "run").string()});
    if (trained.exit_code != 0) throw std::runtime_error(trained.err);
    const Ended exported = run_snug({"export", (dir / "run").string(), "--to", (dir / "weights").string()});
    if (exported.exit_code != 0) throw std::runtime_error(exported.err);
    const std::string weights = read(dir / "weights");
    write(dir / "cut_weights", weights.substr(0, 50));
    write(dir / "shorter_weights", weights.substr(0, weights.size() - 4));
    write(dir / "broken_weights", weights.substr(0, 8) + "}" + weights.substr(9));
    write(dir / "sharded/model.safetensors.index.json", R"({"weight_map": {"conv1.weight": "a.safetensors"}})");
    write(dir / "elsewhere.json", R"({"weight_map": {"conv1.weight": "../weights"}})");
    fs::copy(dir / "run", dir / "damaged", fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(dir / "damaged/snapshots")) {
      std::string bytes = read(entry.path());
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      write(entry.path(), bytes);
    }
    fs::copy(dir / "run", dir / "spoilt", fs::copy_options::recursive);
    write(dir / "spoilt/recipe.toml", "model = 7\n");
  }

  TemporaryFolder folder_;
};

struct Bad {
  std::string arguments;
  std::string message;  // without "snug: "
  int exit_code = 2;
};

void PrintTo(const Bad& bad, std::ostream* os) { *os << "snug " << bad.arguments; }

std::string with_dir(std::string text) {
  for (std::size_t at = 0; (at = text.find("{dir}", at)) != std::string::npos;) text.replace(at, 5, Fixture::get().dir());
  return text;
}

class BadRuns : public testing::TestWithParam<Bad> {};

TEST_P(BadRuns, GetTheirSentenceAndExitCode) {
  std::istringstream words(with_dir(GetParam().arguments));
  const Ended ended = run_snug({std::istream_iterator<std::string>(words), {}}, [] {
    setenv("SNUG_DATA_DIR", (Fixture::get().dir() + "/nothing").c_str(), 1);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2",
           1);  // what is refused for lack of memory, and what is advised, is then the same everywhere
  });
  EXPECT_EQ(ended.exit_code, GetParam().exit_code);
  EXPECT_EQ(ended.out, "");
  // A warning about a passed-over snapshot may come first; the sentence is the last line.
  std::string last = ended.err;
  if (!last.empty()) last.pop_back();
  last = last.substr(last.rfind('\n') + 1);
  EXPECT_EQ(last, "snug: " + with_dir(GetParam().message));
  EXPECT_FALSE(fs::exists(Fixture::get().dir() + "/new")) << "what cannot begin leaves no folder";
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadRuns,
    testing::Values(
        Bad{"train", "'snug train' needs a model or a recipe, as in 'snug train small-cnn' (see 'snug train --help')"},
        Bad{"train small-cnn --epochs 2 --steps 3", "--epochs and --steps both say how long; leave out one of them"},
        Bad{"train small-cnn --epochs 0", "--epochs takes a whole number from 1 to 1000000000, not '0'"},
        Bad{"train small-cnn --steps 1.5", "--steps takes a whole number from 1 to 1000000000000, not '1.5'"},
        Bad{"train small-cnn --learning-rate fast", "--learning-rate takes a number above 0, up to 1000000, not 'fast'"},
        Bad{"train small-cnn --learning-rate nan", "--learning-rate takes a number above 0, up to 1000000, not 'nan'"},
        Bad{"train small-cnn --momentum 1.1", "--momentum takes a number from 0 to 1, not '1.1'"},
        Bad{"train small-cnn --clip-norm 0", "--clip-norm takes a number above 0, up to 1e+30, not '0'"},
        Bad{"train small-cnn --schedule exponential", "--schedule is 'exponential'; it can be constant, step, cosine, linear"},
        Bad{"train small-cnn --optimizer adam", "--optimizer is 'adam'; it can be sgd, adamw; did you mean adamw?"},
        Bad{"train small-cnn --optimizer adamw --momentum 0.9",
            "--momentum is a setting of sgd, and the optimizer is adamw; leave it out, or use --optimizer sgd"},
        Bad{"plan small-cnn --batch 10 --optimizer adamw --nesterov no",
            "--nesterov is a setting of sgd, and the optimizer is adamw; leave it out, or use --optimizer sgd"},
        Bad{"train small-cnn --optimizer adamw --drop-gradients",
            "--drop-gradients is a setting of sgd, and the optimizer is adamw; leave it out, or use --optimizer sgd"},
        Bad{"plan small-cnn --batch 10 --optimizer adamw --momentum-bits 8",
            "--momentum-bits is a setting of sgd, and the optimizer is adamw; leave it out, or use --optimizer sgd"},
        Bad{"train small-cnn --optimizer sgd --beta2 0.95",
            "--beta2 is a setting of adamw, and the optimizer is sgd; leave it out, or use --optimizer adamw"},
        Bad{"train small-cnn --moment-bits 16 --out {dir}/new",
            "--moment-bits is a setting of adamw, and the optimizer is sgd; leave it out, or use --optimizer adamw"},
        Bad{"train small-cnn --optimizer adamw --moment-bits 8", "--moment-bits is '8'; it can be 16, 32"},
        Bad{"train small-cnn --optimizer adamw --beta1 1", "--beta1 takes a number from 0 to 0.999999, not '1'"},
        Bad{"train small-cnn --optimizer adamw --epsilon 0", "--epsilon takes a number above 0, up to 1, not '0'"},
        Bad{"train small-cnn --schedule step",
            "--milestones must name at least one epoch with --schedule step, as in --milestones 60,120"},
        Bad{"train small-cnn --milestones 1", "--milestones go only with --schedule step; add that, or leave them out"},
        Bad{"train small-cnn --schedule step --milestones 2,1", "--milestones must increase"},
        Bad{"train small-cnn --schedule step --milestones 0", "--milestones takes a number above 0, up to 1000000000, not '0'"},
        Bad{"train small-cnn --momentum 0", "--momentum of 0 goes only with --nesterov no; say that, or use a momentum above 0"},
        Bad{"train small-cnn --gamma 2", "--gamma takes a number above 0, up to 1, not '2'"},
        Bad{"train small-cnn --learning-rate 0", "--learning-rate takes a number above 0, up to 1000000, not '0'"},
        Bad{"train small-cnn --milestones 1,,2", "--milestones takes numbers with a comma between them, not '1,,2'"},
        Bad{"train small-cnn --augment maybe", "--augment is yes or no, not 'maybe'"},
        Bad{"train small-cnn --seed -1", "--seed takes a whole number from 0 to 9223372036854775807, not '-1'"},
        Bad{"train small-cnn --keep 0", "--keep takes a whole number from 1 to 1000000, not '0'"},
        Bad{"train small-cnn --microbatch 101", "--microbatch of 101 is more than the batch of 100; use at most that"},
        Bad{"train small-cnn --budget lots",
            "--budget: 'lots' is not a size; write a number of bytes such as 6.7MB (1e6), 6.4MiB (2^20) or 6700000"},
        Bad{"train small-cnn --budget 0", "--budget must be more than 0 bytes"},
        Bad{"train small-cnn --device tpu", "--device is 'tpu'; it can be cpu, cuda"},
        Bad{"train small-cnn --precision bf16 --rounding up", "--rounding is 'up'; it can be nearest, stochastic"},
        Bad{"plan small-cnn --batch 10 --precision fp16 --rounding up", "--rounding is 'up'; it can be nearest, stochastic"},
        Bad{"train small-cnn --rounding nearest", "--rounding is about updates of 16 bits; leave it out with fp32"},
        Bad{"plan small-cnn --batch 10 --rounding nearest", "--rounding is about updates of 16 bits; leave it out with fp32"},
        Bad{"train small-cnn --precision int3", "--precision is 'int3'; it can be fp32, fp16, bf16"},
        Bad{"train small-cnn --checkpoint root",
            "checkpoint is 'root'; it can be none, no-bn, sqrt, log, chen, optimal or greedy (the last two also with a limit, as "
            "in "
            "optimal:6.7MB), or every-M, residual-M or residual-M* with a whole number M from 1"},
        Bad{"train small-cnn --allow magic",
            "--allow is 'magic'; it can be exact, reassociated, microbatch, precision, compressed, sparse"},
        Bad{"sweep small-cnn --batch 10 --allow exact,sparse",
            "a sweep measures one share of the weights; give it with --nonzero, and leave sparse out of --allow"},
        Bad{"sweep small-cnn --batch 10 --allow exact,precision",
            "a sweep measures one precision; give it with --precision, and leave precision out of --allow"},
        Bad{"train small-cnn --checkpoint optimal",
            "checkpoint 'optimal' fills a limit; give it one, as in optimal:24MB, or a --budget"},
        Bad{"train small-cnn --out {dir}/new --plan {dir}/missing.plan",
            "'{dir}/missing.plan' cannot be read: No such file or directory"},
        Bad{"train small-cnn --out {dir}/new --plan {dir}/typo.toml",
            "'{dir}/typo.toml' is not a plan that 'snug plan --save' made, or is damaged: it does not end with a checksum, "
            "so it was cut short or made by an earlier version; plan again"},
        Bad{"train small-cnn --freeze conv9",
            "no parameter's name begins with 'conv9', so nothing can be frozen; the nearest names are conv1.weight, "
            "conv2.weight, "
            "conv3.weight"},
        Bad{"data",
            "'snug data' needs what to do and with which data, as in 'snug data get cifar10' or 'snug data info embedded'"},
        Bad{"data steal cifar10", "'snug data' can get, info, check, tokens and learn, not 'steal'"},
        Bad{"data get embedded", "embedded is part of the program; there is nothing to download"},
        Bad{"data get mnist", "'mnist' cannot be downloaded; only cifar10 can"}));

INSTANTIATE_TEST_SUITE_P(
    Recipes, BadRuns,
    testing::Values(
        Bad{"train {dir}/missing.toml", "'{dir}/missing.toml' cannot be read: No such file or directory"},
        Bad{"train {dir}/typo.toml", "'{dir}/typo.toml', line 2: there is no key 'bach'; did you mean batch?"},
        Bad{"train {dir}/syntax.toml",
            "'{dir}/syntax.toml', line 1: this is not TOML: Error while parsing key-value pair: expected value, saw '\\n'"},
        Bad{"train {dir}/type.toml", "'{dir}/type.toml', line 2: batch must be a whole number"},
        Bad{"train {dir}/modelless.toml", "'{dir}/modelless.toml' has no model; add a line model = \"...\""},
        Bad{"train {dir}/range.toml", "'{dir}/range.toml', line 3: optimizer.momentum takes a number from 0 to 1, not 1.5"},
        Bad{"train {dir}/both.toml", "'{dir}/both.toml', line 3: steps cannot stand beside epochs; give one of the two"}));

INSTANTIATE_TEST_SUITE_P(
    Data, BadRuns,
    testing::Values(
        Bad{"train small-cnn --out {dir}/new --data {dir}/nowhere",
            "data '{dir}/nowhere' cannot be read: there is no such file or folder; give embedded, cifar10, embedded-text or the "
            "path of a "
            "folder or a text"},
        Bad{"train small-cnn --out {dir}/new --data /dev/null",
            "data '/dev/null' is neither a folder nor a file: give embedded, cifar10, embedded-text, a text, or a folder of "
            "texts, images or "
            "CIFAR-10 batches"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/empty",
            "{dir}/empty has neither CIFAR-10 batches nor a folder of images for each class, as in {dir}/empty/cat/1.png"},
        Bad{"train small-cnn --out {dir}/new --data cifar10",
            "cifar10 is not at {dir}/nothing/cifar10: run `snug data get cifar10`"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/short_cifar",
            "{dir}/short_cifar/data_batch_1.bin is cut short or is not CIFAR-10: its 3000 bytes are not a whole number of "
            "records "
            "of 3073"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/odd_cifar",
            "{dir}/odd_cifar/data_batch_1.bin is not CIFAR-10: record 0 has label 255, but there are 10 classes"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/untested_cifar",
            "{dir}/untested_cifar/test_batch.bin cannot be read: No such file or directory"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/not_images",
            "{dir}/not_images/train/cat/1.png is neither a PNG nor a JPEG file"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/cut_images",
            "{dir}/cut_images/train/cat/1.png is cut short or corrupt: it ends too early"},
        Bad{"train small-cnn --out {dir}/new --data {dir}/one_class",
            "{dir}/one_class/train/cat/1.png is neither a PNG nor a JPEG file"},
        Bad{"train small-cnn --out {dir}/new --classes 5",
            "the data 'embedded' has 10 classes; a classifier of 5 cannot tell them apart"},
        Bad{"train small-cnn --out {dir}/new --image-size 64", "the images of embedded are 32x32 and cannot be resized to 64x64"},
        Bad{"data info {dir}/nowhere",
            "data '{dir}/nowhere' cannot be read: there is no such file or folder; give embedded, cifar10, embedded-text or the "
            "path of a "
            "folder or a text"}));

INSTANTIATE_TEST_SUITE_P(
    Weights, BadRuns,
    testing::Values(
        Bad{"train small-cnn --out {dir}/new --init {dir}/nowhere", "'{dir}/nowhere' cannot be read: No such file or directory"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/cut_weights",
            "'{dir}/cut_weights' is not a safetensors file, or is cut short: its header would have 1544 bytes"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/shorter_weights",
            "'{dir}/shorter_weights': tensor 'fc.bias' reaches beyond the end of the file, which may be cut short"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/broken_weights",
            "'{dir}/broken_weights': the header is not JSON in UTF-8 (byte 1 of it)"},
        Bad{"train wrn-10-1 --out {dir}/new --init {dir}/weights",
            "'{dir}/weights' has no tensor 'stem.conv.weight' and 36 more that the model 'wrn-10-1' needs; use "
            "weights of the same model, or take what fits with --init-partial"},
        Bad{"train wrn-10-1 --out {dir}/new --init {dir}/weights --init-partial",
            "'{dir}/weights' has none of the tensors of the model 'wrn-10-1'; use weights of the same model"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/weights --init-prefix model.",
            "no name in '{dir}/weights' begins with 'model.'; its first tensor is 'conv1.weight': give another "
            "--init-prefix, or none"},
        Bad{"train small-cnn --out {dir}/new --init-partial",
            "--init-partial is about the weights that --init names; give that, or leave it out"},
        Bad{"train small-cnn --out {dir}/new --init-prefix model.",
            "--init-prefix is about the weights that --init names; give that, or leave it out"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/empty",
            "the folder '{dir}/empty' has neither model.safetensors nor model.safetensors.index.json; name a "
            "safetensors file"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/sharded",
            "'{dir}/sharded/model.safetensors.index.json' names the file 'a.safetensors', which is not beside it; "
            "fetch that file, too"},
        Bad{"train small-cnn --out {dir}/new --init {dir}/elsewhere.json",
            "'{dir}/elsewhere.json': tensor 'conv1.weight' is in the file '../weights', which is not a plain file name; "
            "shards lie beside their index"},
        Bad{"export {dir}/run", "'snug export' needs --to, as in 'snug export {dir}/run --to weights.safetensors'"},
        Bad{"export {dir}/run --to {dir}/empty",
            "'{dir}/empty' is a folder, and only language models are exported as folders; name a file"},
        Bad{"export {dir}/run --to {dir}/nowhere/w",
            "'{dir}/nowhere/w' cannot be written: there is no folder '{dir}/nowhere'; make it first"}));

INSTANTIATE_TEST_SUITE_P(
    Folders, BadRuns,
    testing::Values(
        Bad{"train small-cnn --out {dir}/run", "folder '{dir}/run' holds a run already; resume it, or choose another folder"},
        Bad{"train small-cnn --out {dir}/file", "folder '{dir}/file' cannot be made: Not a directory"},
        Bad{"train small-cnn --out {dir}/file/x", "folder '{dir}/file/x' cannot be made: Not a directory"},
        Bad{"train small-cnn --out /proc/snug", "folder '/proc/snug' cannot be made: No such file or directory"},
        Bad{"train --resume", "--resume goes on with the run in --out; name its folder, as in --out runs/x --resume"},
        Bad{"train --resume --out {dir}/nowhere", "folder '{dir}/nowhere' holds no run to resume"},
        Bad{"train --resume --out {dir}/run --batch 5", "a resumed run follows recipe.toml in its folder; leave out --batch"},
        Bad{"train --resume --out {dir}/run --init-partial",
            "a resumed run follows recipe.toml in its folder; leave out --init-partial"},
        Bad{"train --resume --out {dir}/run --init-prefix x",
            "a resumed run follows recipe.toml in its folder; leave out --init-prefix"},
        Bad{"train --resume --out {dir}/damaged",
            "all 2 snapshots of the run in '{dir}/damaged' are damaged; bring one back from a copy, or train again in another "
            "folder"},
        Bad{"train --resume --out {dir}/spoilt", "'{dir}/spoilt/recipe.toml', line 1: model must be a text"},
        Bad{"eval", "'snug eval' needs the folder of a run, as in 'snug eval runs/wrn-28-2' (see 'snug eval --help')"},
        Bad{"eval {dir}/nowhere", "there is no folder '{dir}/nowhere'; name one that 'snug train' made"},
        Bad{"eval {dir}/damaged",
            "'{dir}/damaged' holds no whole snapshot; train it first, with 'snug train --out {dir}/damaged'"},
        Bad{"eval {dir}/run --data {dir}/nowhere",
            "data '{dir}/nowhere' cannot be read: there is no such file or folder; give embedded, cifar10, embedded-text or the "
            "path of a "
            "folder or a text"}));

INSTANTIATE_TEST_SUITE_P(
    Memory, BadRuns,
    testing::Values(
        Bad{"train small-cnn --out {dir}/new --budget 1MB --threads 1",
            "small-cnn at batch 100 does not fit 1000000 bytes: the smallest budget that it fits is 1757760 bytes "
            "(1.76 MB), with microbatches of 10 and checkpoint optimal:1, where the largest values alive are 'd.pool1' "
            "(655.36 KB), 'conv1.again' (655.36 KB) and 'plain_input.again' (122.88 KB); give that much, or allow smaller "
            "microbatches with --min-microbatch (now 10; about 439.87 KB with 1), or add precision (about 975.94 KB) to --allow "
            "(about 854.72 KB with sparse too)",
            3},
        Bad{"plan small-cnn --batch 100 --budget 1MB --threads 1 --allow exact",
            "small-cnn at batch 100 does not fit 1000000 bytes: the smallest budget that it fits is 14839680 bytes "
            "(14.84 MB), with microbatches of 100 and checkpoint optimal:1 and weights updated in backward, where the "
            "largest values alive are 'd.pool1' (6.55 MB), 'conv1.again' (6.55 MB) and 'input.again' (1.23 MB); give that "
            "much, or add microbatch to --allow, or add precision (about 8.04 MB) to --allow, or use a smaller --batch",
            3},
        Bad{"train small-cnn --out {dir}/new --microbatch 100 --budget 3MB --threads 1",
            "small-cnn at batch 100 does not fit 3000000 bytes: the smallest budget that it fits with --microbatch 100 is "
            "14839680 bytes (14.84 MB), with microbatches of 100 and checkpoint optimal:1 and weights updated in backward, "
            "where the largest values alive are 'd.pool1' (6.55 MB), 'conv1.again' (6.55 MB) and 'plain_input.again' (1.23 "
            "MB); give that much, or leave out --microbatch, so that a smaller one can be chosen, or add precision (about 8.04 "
            "MB) to --allow, or use a smaller --batch",
            3},
        Bad{"train small-cnn --out {dir}/new --microbatch 100 --checkpoint none --budget 3MB --threads 1",
            "small-cnn at batch 100 does not fit 3000000 bytes: it takes 17630800 bytes (17.63 MB), with microbatches of "
            "100 and checkpoint none and weights updated in backward, where the largest values alive are 'conv1' (6.55 "
            "MB), 'conv2' (3.28 MB) and 'pool1' (1.64 MB); give that much, or leave out --microbatch, so that a smaller "
            "one can be chosen, or leave out --checkpoint, so that another strategy can be chosen, or add precision (about "
            "9.13 MB) to --allow (about 7.83 MB with compressed too), or use a smaller --batch",
            3}));

// A disk without room for a snapshot: the run ends with a sentence, and the snapshots before it are whole.
TEST(FullDisk, EndsTheRunWithASentenceAndKeepsWhatWasSaved) {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  // No file may grow beyond 64 KB: enough for everything but the snapshots.
  const Ended ended = run_snug({"train", "small-cnn", "--batch", "20", "--steps", "2", "--threads", "1", "--out", run}, [] {
    const rlimit limit{.rlim_cur = 65'536, .rlim_max = 65'536};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("snug: folder '" + run +
                           "/snapshots' is full: 'step_000000002.safetensors' would grow past the file size "
                           "allowed there; raise the limit, then go on with: snug train --out " +
                           run + " --resume\n"),
            std::string::npos)
      << ended.err;
  EXPECT_TRUE(fs::is_empty(run + "/snapshots")) << "no part of a snapshot is left behind";
}

}  // namespace
}  // namespace snug::cli
