#include "io/safetensors.h"

#include <cstring>

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::io {

using support::message_of;
using support::TemporaryFolder;
using support::write_bytes;

namespace {

// A file with this header and `data_bytes` bytes of data.
std::string file_with(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\x7F');
}

std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "f", bytes);
  std::string message = message_of<UserError>([&] { SafetensorsReader reader(folder / "f"); });
  const std::string file = "'" + (folder / "f").string() + "'";
  if (const std::size_t at = message.find(file); at != std::string::npos) message.replace(at, file.size(), "FILE");
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(Safetensors, WrittenFileReadsBack) {
  const TemporaryFolder folder;
  std::vector<TensorInfo> tensors{{.name = "a", .dtype = TensorDType::f64, .shape = {2}},
                                  {.name = "scalar \"\xC3\xA4\"\n", .dtype = TensorDType::f32, .shape = {}},
                                  {.name = "none", .dtype = TensorDType::i64, .shape = {3, 0, 2}},
                                  {.name = "b", .dtype = TensorDType::bf16, .shape = {1, 3}}};
  const std::map<std::string, std::string> metadata{{"text", "two\nlines \\ \"quoted\""}, {"empty", ""}};
  const std::string header = make_safetensors_header(tensors, metadata);
  EXPECT_EQ(header.size() % 8, 0U);
  const std::string data = "0123456789abcdefXYZWuvwxyz";  // 16 + 4 + 0 + 6
  write_bytes(folder / "f", header + data);

  const SafetensorsReader reader(folder / "f");
  EXPECT_EQ(reader.header().tensors, tensors);
  EXPECT_EQ(reader.header().metadata, metadata);
  std::string b(6, ' ');
  reader.read(*reader.header().find("b"), std::as_writable_bytes(std::span(b)));
  EXPECT_EQ(b, "uvwxyz");
  EXPECT_EQ(reader.header().find("c"), nullptr);
}

TEST(Safetensors, FileWithoutTensorsIsOne) {
  const TemporaryFolder folder;
  write_bytes(folder / "f", file_with("{}", 0));
  EXPECT_TRUE(SafetensorsReader(folder / "f").header().tensors.empty());
  std::vector<TensorInfo> none;
  write_bytes(folder / "g", make_safetensors_header(none, {}));
  EXPECT_TRUE(SafetensorsReader(folder / "g").header().tensors.empty());
}

TEST(Safetensors, OrderInTheHeaderIsFree) {
  const TemporaryFolder folder;
  write_bytes(folder / "f", file_with(R"({"z":{"data_offsets":[4,8],"shape":[1],"dtype":"F32"},)"
                                      R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}  )",
                                      8));
  const SafetensorsReader reader(folder / "f");
  ASSERT_EQ(reader.header().tensors.size(), 2U);
  EXPECT_EQ(reader.header().tensors[0].name, "a");
  EXPECT_EQ(reader.header().tensors[1].name, "z");
}

TEST(Safetensors, LengthsThatCannotBeAreRefused) {
  EXPECT_TRUE(support::mentions(refusal("1234567"), {"FILE", "too short"}));
  EXPECT_TRUE(support::mentions(refusal(""), {"FILE", "too short"}));
  EXPECT_TRUE(support::mentions(refusal(std::string(8, '\xFF') + "{}"), {"FILE", "cut", "18446744073709551615"}));
  EXPECT_TRUE(support::mentions(refusal(file_with("{}", 0).substr(0, 9)), {"FILE", "cut", "2"}));
}

TEST(Safetensors, HeadersThatAreNotTheFormatsAreRefused) {
  EXPECT_TRUE(support::mentions(refusal(file_with("", 0)), {"FILE", "header", "JSON", "UTF-8", "1"}));
  EXPECT_TRUE(support::mentions(refusal(file_with("{", 0)), {"FILE", "header", "JSON", "UTF-8", "2"}));
  EXPECT_TRUE(support::mentions(refusal(file_with("{} x", 0)), {"FILE", "header", "JSON", "UTF-8", "4"}));
  EXPECT_TRUE(support::mentions(refusal(file_with("{\"\xFF\":{}}", 0)), {"FILE", "header", "JSON", "UTF-8", "3"}));
  EXPECT_TRUE(support::mentions(refusal(file_with("[]", 0)), {"FILE", "not an object"}));
  EXPECT_TRUE(support::mentions(refusal(file_with("7", 0)), {"FILE", "not an object"}));
  EXPECT_TRUE(support::mentions(refusal(file_with(R"({"a":1})", 0)), {"FILE", "not an object"}));
  EXPECT_TRUE(support::mentions(refusal(file_with(R"({"__metadata__":{"a":1}})", 0)), {"FILE", "metadata", "'a'", "not a text"}));
  EXPECT_TRUE(
      support::mentions(refusal(file_with(R"({"__metadata__":{"a":"","a":""}})", 0)), {"FILE", "metadata", "'a'", "twice"}));
  EXPECT_TRUE(support::mentions(refusal(file_with(std::string(100'000, '['), 0)), {"FILE", "not an object"}));
}

TEST(Safetensors, TensorsThatAreNotTheFormatsAreRefused) {
  const auto tensor = [](const std::string& text, std::size_t bytes = 4) {
    return refusal(file_with("{\"a\":{" + text + "}}", bytes));
  };
  EXPECT_TRUE(support::mentions(tensor(R"("shape":[1],"data_offsets":[0,4])"), {"FILE", "'a'", "lacks", "dtype"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","data_offsets":[0,4])"), {"FILE", "'a'", "lacks", "shape"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","shape":[1])"), {"FILE", "'a'", "lacks", "data_offsets"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F33")"), {"FILE", "'a'", "unknown", "'F33'"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","color":"red")"), {"FILE", "'a'", "'color'", "header"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","dtype":"F32")"), {"FILE", "'a'", "'dtype'", "twice"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":7)"), {"FILE", "'dtype'", "'a'", "format"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","shape":[-1])"), {"FILE", "'shape'", "'a'", "format"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","shape":[1.0])"), {"FILE", "'shape'", "'a'", "format"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"F32","shape":[[1]])"), {"FILE", "'shape'", "'a'", "format"}));
  EXPECT_TRUE(
      support::mentions(tensor(R"("shape":[18446744073709551615])"), {"FILE", "'a'", "dimension", "18446744073709551615"}));
  EXPECT_TRUE(support::mentions(tensor(R"("data_offsets":[1])"), {"FILE", "'data_offsets'", "'a'", "format"}));
  EXPECT_TRUE(support::mentions(tensor(R"("data_offsets":[1,2,3])"), {"FILE", "'data_offsets'", "'a'", "format"}));
  EXPECT_TRUE(
      support::mentions(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,5])", 5), {"FILE", "'a'", "4 bytes", "0 to 5"}));
  EXPECT_TRUE(
      support::mentions(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), {"FILE", "'a'", "4 bytes", "4 to 0"}));
  // 2^32 * 2^32 wraps to 0 in 64 bits.
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
                                {"FILE", "'a'", "memory"}));
  EXPECT_TRUE(support::mentions(tensor(R"("dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", 0),
                                {"FILE", "'a'", "memory"}));
}

TEST(Safetensors, BytesMustBelongToExactlyOneTensor) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return refusal(file_with(
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
        bytes));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "nothing was thrown");
  EXPECT_TRUE(support::mentions(two("[0,4]", "[3,7]", 7), {"FILE", "'b'", "begins", "3", "4"}));
  EXPECT_TRUE(support::mentions(two("[0,4]", "[0,4]", 4), {"FILE", "'b'", "begins", "0", "4"}));
  EXPECT_TRUE(support::mentions(two("[0,4]", "[5,9]", 9), {"FILE", "'b'", "begins", "5", "4"}));
  EXPECT_TRUE(support::mentions(two("[1,5]", "[5,9]", 9), {"FILE", "'a'", "begins", "1", "0"}));
  EXPECT_TRUE(support::mentions(two("[0,4]", "[4,8]", 7), {"FILE", "'b'", "reaches"}));
  EXPECT_TRUE(support::mentions(two("[0,4]", "[4,8]", 9), {"FILE", "1", "belong"}));
  EXPECT_TRUE(support::mentions(refusal(file_with(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                                                  R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                                                  0)),
                                {"FILE", "header", "'a'", "twice"}));
}

TEST(Safetensors, NamesThatAreNotUtf8AreNotWritten) {
  std::vector<TensorInfo> tensors{{.name = "a\xFF", .shape = {1}}};
  EXPECT_THROW(make_safetensors_header(tensors, {}), UserError);
}

TEST(Safetensors, FoldersAndMissingFilesAreNamed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { SafetensorsReader reader(folder.path()); }),
                                {"'" + folder.path().string() + "'", "not a file"}));
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { SafetensorsReader reader(folder / "none"); }),
                                {"'" + (folder / "none").string() + "'", "No such file"}));
}

}  // namespace

}  // namespace snug::io
