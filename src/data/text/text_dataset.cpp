#include "data/text/text_dataset.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "base/checksum.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/pieces.h"
#include "base/printable.h"
#include "data/text/embedded_text.h"
#include "data/text/text_source.h"
#include "data/text/token_store.h"
#include "data/text/utf8.h"

namespace snug::data {

namespace {

// Fewer windows than this begin at the same tokens in every epoch: to shift them costs one.
constexpr std::int64_t kLeastToShift = 16;

void add_sample(const TextPart& part, Crc64& checksum) {
  constexpr std::int64_t kBlocks = 64;
  constexpr std::int64_t kBlockBytes = 1024;
  std::vector<std::byte> block(kBlockBytes);
  std::int64_t sampled = part.begin;
  for (std::int64_t i = 0; i < kBlocks && sampled < part.end; ++i) {
    // Texts of up to 64 KiB are sampled as a whole.
    const std::int64_t begin = std::max(sampled, part.begin + part.bytes() / kBlocks * i);
    const std::span<std::byte> bytes = std::span(block).first(static_cast<std::size_t>(std::min(kBlockBytes, part.end - begin)));
    part.source->read(begin, bytes);
    checksum.update(bytes);
    sampled = begin + static_cast<std::int64_t>(bytes.size());
  }
}

class TextDataset : public Dataset {
 public:
  TextDataset(const std::string& spec, const Tokenizer& tokenizer, std::int64_t length) {
    TextParts parts = open_text_parts(spec);
    description_.name = spec;
    description_.kind = Kind::text;
    description_.fingerprint = parts.fingerprint;
    description_.notes = std::move(parts.notes);
    Crc64 sample;
    add_sample(parts.train, sample);
    add_sample(parts.test, sample);
    description_.text = {.tokenizer = tokenizer.name(),
                         .vocabulary = tokenizer.vocabulary(),
                         .tokenizer_fingerprint = tokenizer.fingerprint(),
                         .length = length,
                         .train_bytes = parts.train.bytes(),
                         .test_bytes = parts.test.bytes(),
                         .sample = sample.value()};
    if (tokenizer.is_bytes()) {
      train_ = bytes_as_tokens(std::move(parts.train));
      test_ = bytes_as_tokens(std::move(parts.test));
    } else {
      encode(parts, tokenizer);
    }
    description_.text.train_tokens = train_->size();
    description_.text.test_tokens = test_->size();
    count_examples();
  }

  const Description& description() const override { return description_; }

  std::vector<Input> inputs() const override {
    const std::size_t bytes = static_cast<std::size_t>(description_.text.length) * sizeof(Token);
    return {{.name = "tokens", .example_bytes = bytes, .content = Input::Content::tokens},
            {.name = "labels", .example_bytes = bytes, .content = Input::Content::tokens}};
  }

  void read(Split split, std::int64_t index, std::span<const std::span<std::byte>> inputs) const override {
    read_in_epoch(0, split, index, inputs);
  }

  void read_in_epoch(std::uint64_t epoch, Split split, std::int64_t index,
                     std::span<const std::span<std::byte>> inputs) const override {
    const std::int64_t length = description_.text.length;
    const std::size_t bytes = static_cast<std::size_t>(length) * sizeof(Token);
    SNUG_CHECK(index >= 0 && index < description_.examples(split), "example {} of {}", index, description_.examples(split));
    SNUG_CHECK(inputs.size() == 2 && inputs[0].size() == bytes && inputs[1].size() == bytes, "{} inputs of a text",
               inputs.size());
    const TokenStore& store = split == Split::train ? *train_ : *test_;
    const std::int64_t begin = index * length + (split == Split::train ? shift(epoch) : 0);
    const auto labeled = static_cast<std::size_t>(std::min(length, store.size() - 1 - begin));
    std::vector<Token> tokens(labeled + 1);
    store.read(begin, tokens);
    std::vector<Token> labels(tokens.begin() + 1, tokens.end());
    // What follows the last token that has a label has none, and may be any token.
    tokens.resize(static_cast<std::size_t>(length));
    labels.resize(static_cast<std::size_t>(length), kIgnoredLabel);
    if (labeled < tokens.size()) tokens[labeled] = 0;
    std::memcpy(inputs[0].data(), tokens.data(), bytes);
    std::memcpy(inputs[1].data(), labels.data(), bytes);
  }

 private:
  void encode(const TextParts& parts, const Tokenizer& tokenizer) {
    Encoded train = encode_to_file(parts.train, tokenizer);
    Encoded test = encode_to_file(parts.test, tokenizer);
    train_ = std::move(train.tokens);
    test_ = std::move(test.tokens);
    if (const std::int64_t bad = train.bad_bytes + test.bad_bytes; bad > 0) {
      description_.notes.push_back(fmt::format("{} of {} {} not UTF-8; each is taken as a character of its own",
                                               counted(bad, "byte"), printable(description_.name, 200), bad == 1 ? "is" : "are"));
    }
  }

  void count_examples() {
    const TextFacts& text = description_.text;
    const std::int64_t windows = (text.train_tokens - 1) / text.length;
    if (windows < 1) {
      throw_user_error(
          "{} has {} to train on, fewer than the {} of one example and the one that follows it: give more text or a "
          "shorter length",
          description_.name, counted(text.train_tokens, "token"), text.length);
    }
    if (text.test_tokens < 2) {
      throw_user_error("{} has {} to test on, but at least 2 are needed: give more text", description_.name,
                       counted(text.test_tokens, "token"));
    }
    shifts_ = windows >= kLeastToShift;
    description_.train_examples = shifts_ ? windows - 1 : windows;
    description_.test_examples = (text.test_tokens - 1 + text.length - 1) / text.length;
  }

  // By how many tokens the windows of an epoch are shifted; less than a window, of which one is left out for this.
  std::int64_t shift(std::uint64_t epoch) const {
    if (!shifts_ || epoch == 0) return 0;
    return uniform_below(philox(description_.text.sample, epoch, 0).word[0],
                         static_cast<std::uint32_t>(description_.text.length));
  }

  Description description_;
  std::unique_ptr<TokenStore> train_;
  std::unique_ptr<TokenStore> test_;
  bool shifts_ = false;
};

void read_file(const std::filesystem::path& path, const std::function<void(std::string_view piece)>& take) {
  const File file = open_regular_file(path);
  const std::int64_t bytes = file_size(file, path);
  std::vector<char> buffer(std::min(kPieceBytes, static_cast<std::size_t>(bytes)));
  for_each_piece(static_cast<std::size_t>(bytes), kPieceBytes, [&](std::size_t offset, std::size_t size) {
    const std::span<char> piece = std::span(buffer).first(size);
    read_at(file, path, static_cast<std::int64_t>(offset), std::as_writable_bytes(piece));
    take({piece.data(), size});
  });
}

// The file, or the .txt files of the folder.
void for_each_file(const std::string& spec, const std::function<void(const std::filesystem::path& path)>& take) {
  const std::filesystem::path path(spec);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return take(path);
  for_each_text(path, [&](const std::filesystem::path& file, std::string_view /*name*/) { take(file); });
}

// One file of a check.
void check_file(const std::filesystem::path& path, CheckedTexts& checked) {
  Utf8Check check;
  std::int64_t bytes = 0;
  read_file(path, [&](std::string_view piece) {
    check.feed(piece);
    bytes += static_cast<std::int64_t>(piece.size());
  });
  check.finish();
  if (bytes == 0) throw_user_error("{} is empty", path.string());
  checked.bytes += bytes;
  checked.bad_bytes += check.bad_bytes();
  if (check.bad_bytes() > 0 && checked.with_bad_bytes++ == 0) {
    checked.first_with_bad_bytes = fmt::format("{} at byte {}", path.string(), check.first_bad());
  }
}

}  // namespace

std::unique_ptr<Dataset> open_text(const std::string& spec, const Tokenizer& tokenizer, std::int64_t length) {
  if (length < 1 || length > kMostLength) {
    throw_user_error("examples cannot have {}: give a length of 1 to {}", counted(length, "token"), kMostLength);
  }
  return std::make_unique<TextDataset>(spec, tokenizer, length);
}

std::unique_ptr<Dataset> open_text(const std::string& spec, const TextOptions& options) {
  return open_text(spec, *open_tokenizer(options.tokenizer), options.length == 0 ? kDefaultLength : options.length);
}

void encode_texts(const std::string& spec, const Tokenizer& tokenizer, const TakeTokens& take) {
  const std::unique_ptr<Encoder> encoder = tokenizer.encoder();
  const auto feed = [&](std::string_view piece) { encoder->feed(piece, take); };
  if (spec == kEmbeddedText) {
    const std::shared_ptr<const TextSource> source = embedded_text();
    return read_texts({.source = source, .begin = 0, .end = source->bytes()}, feed, [&](bool) { encoder->finish(take); });
  }
  for_each_file(spec, [&](const std::filesystem::path& path) {
    read_file(path, feed);
    encoder->finish(take);
  });
}

CheckedTexts check_text(const std::string& spec, const BadFileCallback& use) {
  CheckedTexts checked;
  if (spec == kEmbeddedText) return checked;  // no file
  for_each_file(spec, [&](const std::filesystem::path& path) {
    ++checked.files.files;
    try {
      check_file(path, checked);
    } catch (const UserError& error) {
      ++checked.files.bad;
      use(path, error.what());
    }
  });
  return checked;
}

}  // namespace snug::data
