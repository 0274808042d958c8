#include "io/weights_file.h"

#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"

namespace snug::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
// As long as the longest header of a file.
constexpr std::uint64_t kMaxIndexBytes = 100'000'000;

// A name that cannot lead out of the folder.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Reads the index event by event, so that duplicate tensors are found and nothing is built for what is skipped.
class IndexReader {
 public:
  explicit IndexReader(std::string_view source) : source_(source) {}

  std::vector<IndexedTensor> tensors;
  bool has_map = false;

  // NOLINTBEGIN(readability-identifier-naming): the names are the JSON library's
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;
  // NOLINTEND(readability-identifier-naming)

  bool null() { return other_value(); }
  bool boolean(bool /*value*/) { return other_value(); }
  bool number_integer(number_integer_t /*value*/) { return other_value(); }
  bool number_unsigned(number_unsigned_t /*value*/) { return other_value(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return other_value(); }
  bool binary(binary_t& /*value*/) { return other_value(); }
  bool start_array(std::size_t /*elements*/) { return start(); }
  bool end_array() { return end(); }
  bool end_object() { return end(); }

  bool string(string_t& value) {
    if (!in_map()) return other_value();
    if (!is_plain_file_name(value)) {
      throw_user_error("{}: tensor {} is in the file {}, which is not a plain file name; shards lie beside their index", source_,
                       in_quotes(key_), in_quotes(value));
    }
    tensors.push_back({std::move(key_), std::move(value)});
    return true;
  }

  bool start_object(std::size_t /*elements*/) {
    if (depth_ == 1 && key_ == "weight_map") {
      if (has_map) throw_user_error("{} has 'weight_map' twice", source_);
      has_map = in_map_ = true;
      ++depth_;
      return true;
    }
    if (depth_ == 0) {
      ++depth_;
      return true;
    }
    return start();
  }

  bool key(string_t& value) {
    if (in_map() && !names_.insert(value).second) throw_user_error("{} has the tensor {} twice", source_, in_quotes(value));
    if (depth_ == 1 || in_map()) key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) {
    throw_user_error("{} is not JSON in UTF-8 (byte {} of it)", source_, position);
  }

 private:
  bool in_map() const { return in_map_ && depth_ == 2; }

  // Anything but the file of a tensor.
  bool other_value() const {
    if (in_map()) throw_user_error("{}: the file of tensor {} is not a text", source_, in_quotes(key_));
    if (depth_ == 0) throw_user_error("{} is not an index of weights: it is not an object", source_);
    if (depth_ == 1 && key_ == "weight_map") throw_user_error("{}: 'weight_map' is not an object of tensors and files", source_);
    return true;
  }
  bool start() {
    other_value();
    ++depth_;
    return true;
  }
  bool end() {
    --depth_;
    if (depth_ == 1) in_map_ = false;
    return true;
  }

  std::string_view source_;
  std::size_t depth_ = 0;
  bool in_map_ = false;
  std::string key_;
  std::unordered_set<std::string> names_;
};

fs::path find_weights(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const std::string_view name : {kSingleName, kIndexName}) {
    if (fs::exists(path / name, ignored)) return path / name;
  }
  throw_user_error("the folder '{}' has neither {} nor {}; name a safetensors file", path.string(), kSingleName, kIndexName);
}

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

}  // namespace

std::vector<IndexedTensor> parse_weights_index(std::string_view text, std::string_view source) {
  IndexReader reader(source);
  nlohmann::json::sax_parse(text, &reader);
  if (!reader.has_map) throw_user_error("{} is not an index of weights: it has no 'weight_map'", source);
  if (reader.tensors.empty()) throw_user_error("{}: 'weight_map' names no tensor", source);
  return std::move(reader.tensors);
}

WeightsFile::WeightsFile(const fs::path& path) {
  const fs::path found = find_weights(path);
  source_ = quoted(found);
  if (found.extension() == ".json") {
    add_shards(found);
    return;
  }
  header_ = SafetensorsReader(found).header();
  files_ = {found};
}

void WeightsFile::add_shards(const fs::path& index) {
  const std::vector<IndexedTensor> tensors = parse_weights_index(read_text_file(index, kMaxIndexBytes), source_);
  std::unordered_map<std::string_view, const std::string*> file_of;
  std::vector<std::string_view> names;
  std::unordered_set<std::string_view> known;
  for (const IndexedTensor& tensor : tensors) {
    file_of.emplace(tensor.name, &tensor.file);
    if (known.insert(tensor.file).second) names.push_back(tensor.file);
  }
  std::unordered_set<std::string_view> found;
  for (const std::string_view name : names) {
    const fs::path file = index.parent_path() / name;
    std::error_code ignored;
    if (!fs::exists(file, ignored))
      throw_user_error("{} names the file {}, which is not beside it; fetch that file, too", source_, in_quotes(name));
    const SafetensorsReader reader(file);
    for (const TensorInfo& tensor : reader.header().tensors) {
      const auto wanted = file_of.find(tensor.name);
      if (wanted == file_of.end() || *wanted->second != name) {
        throw_user_error("{} has the tensor {}, which {} {}; fetch the index and its files again", quoted(file),
                         in_quotes(tensor.name), source_,
                         wanted == file_of.end() ? "does not name" : fmt::format("says is in {}", in_quotes(*wanted->second)));
      }
      found.insert(wanted->first);
      header_.tensors.push_back(tensor);
      header_.tensors.back().file = files_.size();
    }
    files_.push_back(file);
  }
  for (const IndexedTensor& tensor : tensors) {
    if (found.contains(tensor.name)) continue;
    throw_user_error("{} says that the tensor {} is in {}, where it is not; fetch the index and its files again", source_,
                     in_quotes(tensor.name), in_quotes(tensor.file));
  }
}

void WeightsFile::read(const TensorInfo& tensor, std::uint64_t begin, std::span<std::byte> target) const {
  SNUG_CHECK(tensor.file < files_.size() && target.size() <= tensor.bytes && begin <= tensor.bytes - target.size(),
             "bytes {} to {} are not those of tensor '{}'", begin, begin + target.size(), tensor.name);
  if (!open_ || open_file_ != tensor.file) {
    open_.emplace(files_[tensor.file]);
    open_file_ = tensor.file;
  }
  open_->read_at(tensor.begin + begin, target);
}

}  // namespace snug::io
