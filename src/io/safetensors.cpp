#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"

namespace snug::io {

namespace {

// The limit of the format's own reader, far above any real header.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeRow {
  TensorDType dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<DTypeRow, 15> kDTypes{{{TensorDType::f64, "F64", 8},
                                            {TensorDType::f32, "F32", 4},
                                            {TensorDType::f16, "F16", 2},
                                            {TensorDType::bf16, "BF16", 2},
                                            {TensorDType::f8_e4m3, "F8_E4M3", 1},
                                            {TensorDType::f8_e5m2, "F8_E5M2", 1},
                                            {TensorDType::i64, "I64", 8},
                                            {TensorDType::i32, "I32", 4},
                                            {TensorDType::i16, "I16", 2},
                                            {TensorDType::i8, "I8", 1},
                                            {TensorDType::u64, "U64", 8},
                                            {TensorDType::u32, "U32", 4},
                                            {TensorDType::u16, "U16", 2},
                                            {TensorDType::u8, "U8", 1},
                                            {TensorDType::boolean, "BOOL", 1}}};

const DTypeRow& row_of(TensorDType dtype) {
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeRow& row) { return row.dtype == dtype; });
  SNUG_CHECK(found != kDTypes.end(), "a tensor type without a name");
  return *found;
}

// a * b, or nothing from 2^63 on.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (a != 0 && b > kMost / a) return std::nullopt;
  return a * b;
}

// Reads the header event by event, so that duplicate keys are found and nothing is built for what the format does not have.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view source) : source_(source) {}

  SafetensorsHeader header;

  // NOLINTBEGIN(readability-identifier-naming): the names are the JSON library's
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;
  // NOLINTEND(readability-identifier-naming)

  bool null() { return unexpected(); }
  bool boolean(bool /*value*/) { return unexpected(); }
  bool number_integer(number_integer_t /*value*/) { return unexpected(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return unexpected(); }
  bool binary(binary_t& /*value*/) { return unexpected(); }

  bool number_unsigned(number_unsigned_t value) {
    if (where_ == Where::shape) {
      if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
        throw_user_error("{}: tensor {} has a dimension of {}", source_, in_quotes(tensor_.name), value);
      }
      tensor_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (where_ == Where::offsets && offset_count_ < 2) {
      offsets_[offset_count_++] = value;
      return true;
    }
    return unexpected();
  }

  bool string(string_t& value) {
    if (where_ == Where::metadata) {
      header.metadata[key_] = std::move(value);
      return true;
    }
    if (where_ != Where::tensor || key_ != "dtype") return unexpected();
    const auto found = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeRow& row) { return row.name == value; });
    if (found == kDTypes.end())
      throw_user_error("{}: tensor {} is of the unknown type {}", source_, in_quotes(tensor_.name), in_quotes(value));
    tensor_.dtype = found->dtype;
    has_dtype_ = true;
    return true;
  }

  bool start_object(std::size_t /*elements*/) {
    if (where_ == Where::outside) {
      where_ = Where::top;
    } else if (where_ == Where::top) {
      where_ = key_ == kMetadata ? Where::metadata : Where::tensor;
      tensor_ = {.name = key_};
      has_dtype_ = has_shape_ = has_offsets_ = false;
    } else {
      return unexpected();
    }
    return true;
  }

  bool key(string_t& value) {
    if (where_ == Where::top && !names_.insert(value).second) {
      throw_user_error("{}: the header has {} twice", source_, in_quotes(value));
    }
    if (where_ == Where::metadata && header.metadata.contains(value)) {
      throw_user_error("{}: the header's metadata has {} twice", source_, in_quotes(value));
    }
    if (where_ == Where::tensor) {
      const bool known = value == "dtype" || value == "shape" || value == "data_offsets";
      const bool again =
          (value == "dtype" && has_dtype_) || (value == "shape" && has_shape_) || (value == "data_offsets" && has_offsets_);
      if (!known || again)
        throw_user_error("{}: tensor {} has {} {}", source_, in_quotes(tensor_.name), in_quotes(value),
                         known ? "twice" : "in the header");
    }
    key_ = std::move(value);
    return true;
  }

  bool end_object() {
    if (where_ == Where::tensor) finish_tensor();
    where_ = where_ == Where::top ? Where::outside : Where::top;
    return true;
  }

  bool start_array(std::size_t /*elements*/) {
    if (where_ == Where::tensor && key_ == "shape") {
      where_ = Where::shape;
      has_shape_ = true;
    } else if (where_ == Where::tensor && key_ == "data_offsets") {
      where_ = Where::offsets;
      has_offsets_ = true;
      offset_count_ = 0;
    } else {
      return unexpected();
    }
    return true;
  }

  bool end_array() {
    if (where_ == Where::offsets && offset_count_ != 2) return unexpected();
    where_ = Where::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) {
    throw_user_error("{}: the header is not JSON in UTF-8 (byte {} of it)", source_, position);
  }

 private:
  enum class Where : std::uint8_t { outside, top, metadata, tensor, shape, offsets };

  bool unexpected() const {
    if (where_ == Where::outside || where_ == Where::top) throw_user_error("{}: the header is not an object of tensors", source_);
    if (where_ == Where::metadata) throw_user_error("{}: metadata {} is not a text", source_, in_quotes(key_));
    throw_user_error("{}: '{}' of tensor {} is not what the format has there", source_, key_, in_quotes(tensor_.name));
  }

  void finish_tensor() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      throw_user_error("{}: tensor {} lacks its {}", source_, in_quotes(tensor_.name),
                       !has_dtype_   ? "dtype"
                       : !has_shape_ ? "shape"
                                     : "data_offsets");
    }
    std::optional<std::uint64_t> bytes = bytes_per_element(tensor_.dtype);
    // A dimension of 0 must not hide an overflow of the others.
    const bool empty = std::find(tensor_.shape.begin(), tensor_.shape.end(), 0) != tensor_.shape.end();
    for (const std::int64_t dim : tensor_.shape) {
      if (dim != 0 && bytes) bytes = product(*bytes, static_cast<std::uint64_t>(dim));
    }
    if (!bytes) throw_user_error("{}: tensor {} has a shape beyond any memory", source_, in_quotes(tensor_.name));
    if (offsets_[1] < offsets_[0] || offsets_[1] - offsets_[0] != (empty ? 0 : *bytes)) {
      throw_user_error("{}: tensor {} takes {} bytes but has offsets {} to {}", source_, in_quotes(tensor_.name),
                       empty ? 0 : *bytes, offsets_[0], offsets_[1]);
    }
    tensor_.begin = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    header.tensors.push_back(std::move(tensor_));
  }

  std::string_view source_;
  Where where_ = Where::outside;
  std::string key_;
  TensorInfo tensor_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::unordered_set<std::string> names_;
};

// Line by line: a plan's text is long, and every step of the conversion to JSON copies its input.
void append_json_text(std::string& json, std::string_view text) {
  json += '"';
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = text.substr(begin, end - begin);
    begin = end;
    try {
      const std::string quoted = nlohmann::json(line).dump();
      json.append(quoted, 1, quoted.size() - 2);
    } catch (const nlohmann::json::exception&) {
      throw_user_error("{} is not UTF-8 and cannot be saved", in_quotes(text));
    }
  }
  json += '"';
}

}  // namespace

std::string_view name_of(TensorDType dtype) { return row_of(dtype).name; }

std::size_t bytes_per_element(TensorDType dtype) { return row_of(dtype).bytes; }

const TensorInfo* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes, std::string_view source) {
  HeaderReader reader(source);
  nlohmann::json::sax_parse(text, &reader);
  SafetensorsHeader header = std::move(reader.header);
  // Empty tensors may share an offset with the next one.
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes;
  });
  const std::uint64_t before = sizeof(std::uint64_t) + text.size();
  SNUG_CHECK(file_bytes >= before, "a header longer than its file");
  const std::uint64_t data_bytes = file_bytes - before;
  std::uint64_t end = 0;
  for (TensorInfo& tensor : header.tensors) {
    if (tensor.begin != end) {
      throw_user_error("{}: tensor {} begins at {}, {} the end of the one before it at {}", source, in_quotes(tensor.name),
                       tensor.begin, tensor.begin < end ? "before" : "beyond", end);
    }
    if (tensor.bytes > data_bytes - end)
      throw_user_error("{}: tensor {} reaches beyond the end of the file, which may be cut short", source,
                       in_quotes(tensor.name));
    end += tensor.bytes;
    tensor.begin += before;
  }
  if (end != data_bytes) throw_user_error("{}: {} bytes after the last tensor belong to none", source, data_bytes - end);
  return header;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(path) {
  const std::string source = "'" + path.string() + "'";
  if (file_.size() < sizeof(std::uint64_t)) throw_user_error("{} is too short for a safetensors file", source);
  std::array<std::byte, sizeof(std::uint64_t)> prefix{};
  file_.read_at(0, prefix);
  static_assert(std::endian::native == std::endian::little, "the format is little-endian, and tensors are read as they lie");
  const auto length = std::bit_cast<std::uint64_t>(prefix);
  if (length > kMaxHeaderBytes || length > file_.size() - sizeof(std::uint64_t)) {
    throw_user_error("{} is not a safetensors file, or is cut short: its header would have {} bytes", source, length);
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file_.read_at(sizeof(std::uint64_t), std::as_writable_bytes(std::span(text)));
  header_ = parse_safetensors_header(text, file_.size(), source);
}

void SafetensorsReader::read(const TensorInfo& tensor, std::span<std::byte> target) const {
  SNUG_CHECK(target.size() == tensor.bytes, "tensor '{}' has {} bytes, not {}", tensor.name, tensor.bytes, target.size());
  file_.read_at(tensor.begin, target);
}

std::string make_safetensors_header(std::vector<TensorInfo>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string json;
  // About its size, with escaped quotes and line ends: growing would take as much again.
  std::size_t expected = tensors.size() * 128;
  for (const auto& [key, value] : metadata) expected += key.size() + value.size() + value.size() / 16 + 8;
  json.reserve(expected);
  json.append(sizeof(std::uint64_t), ' ');  // its length, which is not known yet
  json += '{';
  if (!metadata.empty()) {
    append_json_text(json, kMetadata);
    json += ":{";
    for (const auto& [key, value] : metadata) {
      append_json_text(json, key);
      json += ':';
      append_json_text(json, value);
      json += ',';
    }
    json.back() = '}';
    json += ',';
  }
  std::uint64_t end = 0;
  for (TensorInfo& tensor : tensors) {
    tensor.begin = end;
    tensor.bytes = bytes_per_element(tensor.dtype);
    for (const std::int64_t dim : tensor.shape) tensor.bytes *= static_cast<std::uint64_t>(dim);
    end += tensor.bytes;
    append_json_text(json, tensor.name);
    json += fmt::format(R"(:{{"dtype":"{}","shape":[)", name_of(tensor.dtype));
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) json += fmt::format("{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    json += fmt::format(R"(],"data_offsets":[{},{}]}},)", tensor.begin, end);
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');  // so that the tensors lie on 8-byte boundaries
  const std::uint64_t length = json.size() - sizeof(std::uint64_t);
  if (length > kMaxHeaderBytes)
    throw_user_error("names and texts of {} bytes are more than a safetensors header may have", length);
  for (TensorInfo& tensor : tensors) tensor.begin += json.size();
  std::memcpy(json.data(), &length, sizeof(length));
  return json;
}

}  // namespace snug::io
