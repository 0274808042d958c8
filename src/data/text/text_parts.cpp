#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "data/dataset.h"
#include "data/folder.h"
#include "data/images/cifar.h"
#include "data/images/class_folders.h"
#include "data/text/embedded_text.h"
#include "data/text/text_dataset.h"
#include "data/text/text_source.h"

namespace snug::data {

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Ends a walk through a folder.
struct FoundImage {};

// Whether there is a .txt file somewhere below; FoundImage when there is an image.
bool has_text(const fs::path& folder, int depth) {
  bool found = false;
  for_each_entry(folder, [&](std::string_view name, EntryKind kind) {
    if (kind == EntryKind::file && is_image_name(name)) throw FoundImage();
    found = found || (kind == EntryKind::file && has_ending(name, {"txt"}));
    // A loop of links is refused when it is listed.
    if (kind == EntryKind::folder && depth < 8) found = has_text(folder / name, depth + 1) || found;
  });
  return found;
}

// The files of one side of a data set.
struct Listed {
  std::shared_ptr<TextFiles> files;
  std::uint64_t fingerprint = 0;
  std::int64_t empty = 0;
  std::int64_t others = 0;
};

void add_file(Listed& listed, const fs::path& path, std::string_view name) {
  const std::int64_t bytes = file_size(open_regular_file(path), path);
  if (bytes == 0) ++listed.empty;
  listed.fingerprint += fingerprint_of(fmt::format("{} {}", name, bytes));
  listed.files->add(std::string(name), bytes);
}

// `path` is a file or a folder; names in the fingerprint are relative to the folder that has it.
Listed list_side(const fs::path& path) {
  const fs::path above = path.parent_path();
  Listed listed{.files = std::make_shared<TextFiles>(above)};
  const std::string own = path.filename().string();
  if (is_folder(path)) {
    listed.others = for_each_text(
        path, [&](const fs::path& file, std::string_view name) { add_file(listed, file, own + '/' + std::string(name)); });
  } else {
    add_file(listed, path, own);
  }
  listed.files->finish();
  if (listed.files->bytes() == 0) {
    throw_user_error("{} {}: there is no text in it", path.string(), listed.empty > 0 ? "is empty" : "has no .txt file");
  }
  return listed;
}

TextPart whole(const std::shared_ptr<TextFiles>& files) { return {.source = files, .begin = 0, .end = files->bytes()}; }

// Where the last tenth begins: at a character, so that both sides are UTF-8 if the whole is.
std::int64_t begin_of_last_tenth(const TextSource& source) {
  std::int64_t begin = source.bytes() - source.bytes() / 10;
  std::array<std::byte, 3> bytes{};
  const std::int64_t there = std::min<std::int64_t>(source.bytes() - begin, bytes.size());
  source.read(begin, std::span(bytes).first(static_cast<std::size_t>(there)));
  for (std::int64_t i = 0; i < there && (bytes[static_cast<std::size_t>(i)] & std::byte{0xC0}) == std::byte{0x80}; ++i) ++begin;
  return begin;
}

TextParts divide(std::shared_ptr<const TextSource> source, const std::string& spec) {
  if (source->bytes() < 10) {
    throw_user_error("{} has only {}: too little to set a tenth aside for testing", spec, counted(source->bytes(), "byte"));
  }
  const std::int64_t cut = begin_of_last_tenth(*source);
  TextParts parts;
  parts.test = {.source = source, .begin = cut, .end = source->bytes()};
  parts.train = {.source = std::move(source), .begin = 0, .end = cut};
  return parts;
}

std::optional<fs::path> first_of(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const fs::path path = folder / name;
    if (path.has_extension() ? is_file(path) : is_folder(path)) return path;
  }
  return std::nullopt;
}

void add_notes(const fs::path& folder, std::int64_t empty, std::int64_t others, std::vector<std::string>& notes) {
  const std::string name = printable(folder.string(), 200);
  if (empty > 0) notes.push_back(fmt::format("{} of {} {} empty", counted(empty, "file"), name, empty == 1 ? "is" : "are"));
  if (others == 0) return;
  notes.push_back(others == 1 ? fmt::format("1 file of {} is not a .txt file and is left out", name)
                              : fmt::format("{} files of {} are not .txt files and are left out", others, name));
}

// PATH/train.txt and PATH/test.txt, or folders of these names.
std::optional<TextParts> open_divided(const fs::path& folder) {
  const std::optional<fs::path> train_path = first_of(folder, {"train.txt", "train"});
  const std::optional<fs::path> test_path = first_of(folder, {"test.txt", "test", "valid.txt", "valid"});
  if (!train_path || !test_path) return std::nullopt;
  const Listed train = list_side(*train_path);
  const Listed test = list_side(*test_path);
  TextParts parts{.train = whole(train.files), .test = whole(test.files), .fingerprint = train.fingerprint + test.fingerprint};
  std::int64_t beside = 0;
  for_each_entry(folder, [&](std::string_view name, EntryKind kind) {
    if (kind == EntryKind::file && has_ending(name, {"txt"}) && name != train_path->filename() && name != test_path->filename())
      ++beside;
  });
  if (beside > 0) {
    parts.notes.push_back(fmt::format("{} beside {} and {} {} left out", counted(beside, ".txt file"),
                                      train_path->filename().string(), printable(test_path->string(), 200),
                                      beside == 1 ? "is" : "are"));
  }
  add_notes(folder, train.empty + test.empty, train.others + test.others, parts.notes);
  return parts;
}

TextParts open_folder(const fs::path& folder) {
  if (std::optional<TextParts> divided = open_divided(folder)) return std::move(*divided);
  Listed listed{.files = std::make_shared<TextFiles>(folder)};
  listed.others = for_each_text(folder, [&](const fs::path& path, std::string_view name) { add_file(listed, path, name); });
  listed.files->finish();
  if (listed.files->bytes() == 0) {
    throw_user_error("{} has no .txt file{}: there is no text in it", folder.string(),
                     listed.empty > 0 ? " that is not empty" : "");
  }
  TextParts parts = divide(listed.files, folder.string());
  parts.fingerprint = listed.fingerprint;
  add_notes(folder, listed.empty, listed.others, parts.notes);
  return parts;
}

}  // namespace

bool is_text_data(const std::string& spec) {
  if (spec == kEmbeddedText) return true;
  const fs::path path(spec);
  if (is_file(path)) return true;
  if (!is_folder(path) || is_cifar_folder(path)) return false;
  try {
    return has_text(path, 0);
  } catch (const FoundImage&) {
    return false;
  }
}

TextParts open_text_parts(const std::string& spec) {
  if (spec == kEmbeddedText) {
    TextParts parts = divide(embedded_text(), spec);
    parts.fingerprint = fingerprint_of(spec);
    return parts;
  }
  const fs::path path(spec);
  if (is_folder(path)) return open_folder(path);
  const Listed listed = list_side(path);
  TextParts parts = divide(listed.files, spec);
  // The file may have moved, and be called otherwise now.
  parts.fingerprint = fingerprint_of(fmt::format("{}", listed.files->bytes()));
  return parts;
}

}  // namespace snug::data
