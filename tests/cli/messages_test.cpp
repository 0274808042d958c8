// Bad flags, recipes, data, weights, snapshots and folders: what is said about each, word for word, and the exit code. The only
// place where sentences are asserted; messages.txt has them.
#include <fstream>
#include <sstream>

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
    write(dir / "latin1", "caf\xE9\n");
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

struct Case {
  std::string before;     // empty lines and comments of the file
  std::string arguments;  // separated by spaces
  int exit_code = 0;
  std::string message;  // standard error
};

const std::string kFile = SNUG_TEST_SOURCE_DIR "/cli/messages.txt";

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::ifstream file(kFile);
  std::string before;
  for (std::string line; std::getline(file, line);) {
    const std::size_t arrow = line.rfind(" -> ");
    if (line.empty() || line.starts_with('#')) {
      before += line + '\n';
    } else if (line.starts_with("  ") && !cases.empty()) {
      cases.back().message += line.substr(2) + '\n';
    } else if (line.starts_with("snug") && arrow != std::string::npos) {
      cases.push_back({before, line.substr(4, arrow - 4), std::stoi(line.substr(arrow + 4)), ""});
      before.clear();
    } else {
      throw std::runtime_error("messages.txt has a line of no case: " + line);
    }
  }
  return cases;
}

void write_case(std::ostream& file, const Case& c, int exit_code, const std::string& message) {
  file << c.before << "snug" << c.arguments << " -> " << exit_code << '\n';
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) file << "  " << line << '\n';
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

TEST(Messages, AreAsWrittenDown) {
  const std::string dir = Fixture::get().dir();
  std::ostringstream now;
  const std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 100U) << "the cases of " << kFile;
  for (const Case& c : cases) {
    SCOPED_TRACE("snug" + c.arguments);
    std::istringstream words(replaced(c.arguments, "{dir}", dir));
    const Ended ended = run_snug({std::istream_iterator<std::string>(words), {}}, [&] {
      setenv("SNUG_DATA_DIR", (dir + "/nothing").c_str(), 1);
      // What is refused for lack of memory, and what is advised, is then the same everywhere.
      setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    });
    const std::string message = replaced(ended.err, dir, "{dir}");
    EXPECT_EQ(ended.exit_code, c.exit_code);
    EXPECT_EQ(message, c.message);
    EXPECT_TRUE(message.ends_with('\n') && !message.ends_with("\n\n")) << "it ends with its line";
    EXPECT_TRUE(ended.out.empty() || c.arguments.ends_with("--json")) << ended.out;
    EXPECT_FALSE(fs::exists(dir + "/new")) << "what cannot begin leaves no folder";
    write_case(now, c, ended.exit_code, message);
  }
  if (const char* file = std::getenv("SNUG_WRITE_GOLDENS")) std::ofstream(file) << now.str();
}

}  // namespace
}  // namespace snug::cli
