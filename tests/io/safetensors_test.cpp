#include "io/safetensors.h"

#include <cstring>

#include <gtest/gtest.h>

#include "support/files.h"
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
  EXPECT_EQ(refusal("1234567"), "FILE is too short for a safetensors file");
  EXPECT_EQ(refusal(""), "FILE is too short for a safetensors file");
  EXPECT_EQ(refusal(std::string(8, '\xFF') + "{}"),
            "FILE is not a safetensors file, or is cut short: its header would have 18446744073709551615 bytes");
  EXPECT_EQ(refusal(file_with("{}", 0).substr(0, 9)),
            "FILE is not a safetensors file, or is cut short: its header would have 2 bytes");
}

TEST(Safetensors, HeadersThatAreNotTheFormatsAreRefused) {
  EXPECT_EQ(refusal(file_with("", 0)), "FILE: the header is not JSON in UTF-8 (byte 1 of it)");
  EXPECT_EQ(refusal(file_with("{", 0)), "FILE: the header is not JSON in UTF-8 (byte 2 of it)");
  EXPECT_EQ(refusal(file_with("{} x", 0)), "FILE: the header is not JSON in UTF-8 (byte 4 of it)");
  EXPECT_EQ(refusal(file_with("{\"\xFF\":{}}", 0)), "FILE: the header is not JSON in UTF-8 (byte 3 of it)");
  EXPECT_EQ(refusal(file_with("[]", 0)), "FILE: the header is not an object of tensors");
  EXPECT_EQ(refusal(file_with("7", 0)), "FILE: the header is not an object of tensors");
  EXPECT_EQ(refusal(file_with(R"({"a":1})", 0)), "FILE: the header is not an object of tensors");
  EXPECT_EQ(refusal(file_with(R"({"__metadata__":{"a":1}})", 0)), "FILE: metadata 'a' is not a text");
  EXPECT_EQ(refusal(file_with(R"({"__metadata__":{"a":"","a":""}})", 0)), "FILE: the header's metadata has 'a' twice");
  EXPECT_EQ(refusal(file_with(std::string(100'000, '['), 0)), "FILE: the header is not an object of tensors");
}

TEST(Safetensors, TensorsThatAreNotTheFormatsAreRefused) {
  const auto tensor = [](const std::string& text, std::size_t bytes = 4) {
    return refusal(file_with("{\"a\":{" + text + "}}", bytes));
  };
  EXPECT_EQ(tensor(R"("shape":[1],"data_offsets":[0,4])"), "FILE: tensor 'a' lacks its dtype");
  EXPECT_EQ(tensor(R"("dtype":"F32","data_offsets":[0,4])"), "FILE: tensor 'a' lacks its shape");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1])"), "FILE: tensor 'a' lacks its data_offsets");
  EXPECT_EQ(tensor(R"("dtype":"F33")"), "FILE: tensor 'a' is of the unknown type 'F33'");
  EXPECT_EQ(tensor(R"("dtype":"F32","color":"red")"), "FILE: tensor 'a' has 'color' in the header");
  EXPECT_EQ(tensor(R"("dtype":"F32","dtype":"F32")"), "FILE: tensor 'a' has 'dtype' twice");
  EXPECT_EQ(tensor(R"("dtype":7)"), "FILE: 'dtype' of tensor 'a' is not what the format has there");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[-1])"), "FILE: 'shape' of tensor 'a' is not what the format has there");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1.0])"), "FILE: 'shape' of tensor 'a' is not what the format has there");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[[1]])"), "FILE: 'shape' of tensor 'a' is not what the format has there");
  EXPECT_EQ(tensor(R"("shape":[18446744073709551615])"), "FILE: tensor 'a' has a dimension of 18446744073709551615");
  EXPECT_EQ(tensor(R"("data_offsets":[1])"), "FILE: 'data_offsets' of tensor 'a' is not what the format has there");
  EXPECT_EQ(tensor(R"("data_offsets":[1,2,3])"), "FILE: 'data_offsets' of tensor 'a' is not what the format has there");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,5])", 5),
            "FILE: tensor 'a' takes 4 bytes but has offsets 0 to 5");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "FILE: tensor 'a' takes 4 bytes but has offsets 4 to 0");
  // 2^32 * 2^32 wraps to 0 in 64 bits.
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
            "FILE: tensor 'a' has a shape beyond any memory");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", 0),
            "FILE: tensor 'a' has a shape beyond any memory");
}

TEST(Safetensors, BytesMustBelongToExactlyOneTensor) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return refusal(file_with(
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
        bytes));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "nothing was thrown");
  EXPECT_EQ(two("[0,4]", "[3,7]", 7), "FILE: tensor 'b' begins at 3, before the end of the one before it at 4");
  EXPECT_EQ(two("[0,4]", "[0,4]", 4), "FILE: tensor 'b' begins at 0, before the end of the one before it at 4");
  EXPECT_EQ(two("[0,4]", "[5,9]", 9), "FILE: tensor 'b' begins at 5, beyond the end of the one before it at 4");
  EXPECT_EQ(two("[1,5]", "[5,9]", 9), "FILE: tensor 'a' begins at 1, beyond the end of the one before it at 0");
  EXPECT_EQ(two("[0,4]", "[4,8]", 7), "FILE: tensor 'b' reaches beyond the end of the file, which may be cut short");
  EXPECT_EQ(two("[0,4]", "[4,8]", 9), "FILE: 1 bytes after the last tensor belong to none");
  EXPECT_EQ(refusal(file_with(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                              R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                              0)),
            "FILE: the header has 'a' twice");
}

TEST(Safetensors, NamesThatAreNotUtf8AreNotWritten) {
  std::vector<TensorInfo> tensors{{.name = "a\xFF", .shape = {1}}};
  EXPECT_THROW(make_safetensors_header(tensors, {}), UserError);
}

TEST(Safetensors, FoldersAndMissingFilesAreNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<UserError>([&] { SafetensorsReader reader(folder.path()); }),
            "'" + folder.path().string() + "' is not a file");
  EXPECT_EQ(message_of<UserError>([&] { SafetensorsReader reader(folder / "none"); }),
            "'" + (folder / "none").string() + "' cannot be read: No such file or directory");
}

}  // namespace

}  // namespace snug::io
