#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "data/dataset.h"
#include "data/images/get_cifar10.h"
#include "data/text/bpe_learner.h"
#include "data/text/embedded_text.h"
#include "data/text/text_dataset.h"
#include "data/text/tokenizer.h"
#include "io/file_io.h"
#include "report/text.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

// What `learn` makes where --vocabulary does not say it.
constexpr std::int64_t kLearnedTokens = 4096;

void get(const Flags& flags) {
  if (flags.dataset == "embedded" || flags.dataset == data::kEmbeddedText)
    throw_user_error("{} is part of the program; there is nothing to download", flags.dataset);
  if (flags.dataset != "cifar10") throw_user_error("'{}' cannot be downloaded; only cifar10 can", flags.dataset);
  const std::filesystem::path folder = data::cifar10_folder();
  const bool terminal = isatty(STDERR_FILENO) == 1;
  std::string last;
  const data::GetResult result = data::get_cifar10(folder, [&](const data::GetProgress& progress) {
    if (terminal && progress.total > 0) {
      std::fputs(fmt::format("\r\x1b[K{} {} of {}", printable(progress.doing), format_bytes(Bytes(progress.done)),
                             format_bytes(Bytes(progress.total)))
                     .c_str(),
                 stderr);
    } else if (progress.doing != last) {
      note(progress.doing);
    }
    last = progress.doing;
  });
  if (terminal) std::fputs("\r\x1b[K", stderr);
  const char* how = result == data::GetResult::already_there ? "was there already, complete and verified"
                    : result == data::GetResult::downloaded  ? "downloaded and verified"
                                                             : "brought from the mirror and verified";
  if (flags.json) {
    return write_json({{"data", flags.dataset}, {"folder", folder.string()}, {"result", how}});
  }
  write_out(fmt::format("{}: {} {}\n", folder.string(), flags.dataset, how));
}

settings::Recipe recipe_of(const Flags& flags) {
  settings::Recipe recipe;
  for (const auto& [key, texts] : flags.knobs) take(settings::knob(key), texts, recipe);
  return recipe;
}

nlohmann::ordered_json image_json(const data::Description& data) {
  return {{"data", data.name},
          {"channels", data.channels},
          {"height", data.height},
          {"width", data.width},
          {"classes", data.classes},
          {"class_names", data.class_names},
          {"train_examples", data.train_examples},
          {"test_examples", data.test_examples},
          {"mean", data.mean},
          {"std", data.std},
          {"notes", data.notes}};
}

std::string image_text(const data::Description& data) {
  std::string out =
      fmt::format("{}: {} training and {} test images of {}x{} with {}\n", data.name, report::format_count(data.train_examples),
                  report::format_count(data.test_examples), data.height, data.width, counted(data.channels, "channel"));
  out += counted(data.classes, "class", "classes") + ":";
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < data.class_names.size() && i < kShown; ++i) out += fmt::format(" {}", data.class_names[i]);
  if (data.class_names.size() > kShown) out += " ...";
  out += "\nper channel, of 0..255:";
  for (std::size_t c = 0; c < data.mean.size(); ++c) out += fmt::format(" {:.1f} +- {:.1f}", data.mean[c], data.std[c]);
  return out + "\n";
}

double tokens_per_byte(const data::TextFacts& text) {
  return static_cast<double>(text.train_tokens + text.test_tokens) / static_cast<double>(text.train_bytes + text.test_bytes);
}

nlohmann::ordered_json text_json(const data::Description& data, const data::CheckedTexts& checked) {
  const data::TextFacts& text = data.text;
  return {{"data", data.name},
          {"tokenizer", text.tokenizer},
          {"vocabulary", text.vocabulary},
          {"length", text.length},
          {"train_examples", data.train_examples},
          {"test_examples", data.test_examples},
          {"train_tokens", text.train_tokens},
          {"test_tokens", text.test_tokens},
          {"train_bytes", text.train_bytes},
          {"test_bytes", text.test_bytes},
          {"tokens_per_byte", tokens_per_byte(text)},
          {"bytes_not_utf8", checked.bad_bytes},
          {"notes", data.notes}};
}

// "2 bytes are not UTF-8, the first in novel.txt at byte 7": no text without such bytes.
std::string bad_bytes_text(const data::CheckedTexts& checked) {
  return fmt::format("{} {} not UTF-8, the first in {}", counted(checked.bad_bytes, "byte"),
                     checked.bad_bytes == 1 ? "is" : "are", printable(checked.first_with_bad_bytes, 200));
}

std::string text_text(const data::Description& data, const data::CheckedTexts& checked) {
  const data::TextFacts& text = data.text;
  const auto number = [](std::int64_t count) { return report::format_count(count); };
  std::string out = fmt::format("{}: {} training and {} test tokens, {:.3f} per byte\n", data.name, number(text.train_tokens),
                                number(text.test_tokens), tokens_per_byte(text));
  out += fmt::format("{} training and {} test examples of {}\n", number(data.train_examples), number(data.test_examples),
                     counted(text.length, "token"));
  out += fmt::format("tokenizer {} with {} tokens\n", printable(text.tokenizer, 200), number(text.vocabulary));
  return checked.bad_bytes == 0 ? out + "all of it is UTF-8\n" : out + bad_bytes_text(checked) + "\n";
}

void info(const Flags& flags) {
  const settings::Recipe recipe = recipe_of(flags);
  const std::unique_ptr<data::Dataset> dataset = data::open_dataset(
      flags.dataset, {.image_size = recipe.image_size.value_or(0),
                      .text = {.tokenizer = recipe.tokenizer.value_or("bytes"), .length = recipe.length.value_or(0)}});
  const data::Description& data = dataset->description();
  if (data.kind == data::Kind::images && (recipe.tokenizer || recipe.length))
    throw_user_error("{} has images; --tokenizer and --length are for texts", data.name);
  note_each(data.notes);
  if (data.kind == data::Kind::images) return flags.json ? write_json(image_json(data)) : write_out(image_text(data));
  const data::CheckedTexts checked =
      data::check_text(flags.dataset, [](const std::filesystem::path& /*file*/, const std::string& /*reason*/) {});
  flags.json ? write_json(text_json(data, checked)) : write_out(text_text(data, checked));
}

// Bad files are listed as they are found, but for JSON, which is one object.
void check(const Flags& flags) {
  nlohmann::ordered_json bad = nlohmann::ordered_json::array();
  const data::BadFileCallback use = [&](const std::filesystem::path& file, const std::string& reason) {
    if (flags.json) {
      bad.push_back({{"file", file.string()}, {"reason", reason}});
    } else {
      write_out(printable(reason, reason.size()) + "\n");
    }
  };
  const bool is_text = data::is_text_data(flags.dataset);
  data::CheckedTexts texts;
  if (is_text) texts = data::check_text(flags.dataset, use);
  const data::CheckedFiles checked = is_text ? texts.files : data::check_dataset(flags.dataset, use);
  if (flags.json) {
    nlohmann::ordered_json json{{"data", flags.dataset}, {"files", checked.files}, {"bad", checked.bad}, {"bad_files", bad}};
    if (is_text) json["bytes_not_utf8"] = texts.bad_bytes;
    write_json(json);
  }
  if (checked.bad > 0) {
    throw_user_error("{} of the {} files of {} cannot be used; repair or remove {}", report::format_count(checked.bad),
                     report::format_count(checked.files), printable(flags.dataset, 200), checked.bad == 1 ? "it" : "them");
  }
  if (flags.json) return;
  if (checked.files == 0) return write_out(fmt::format("{} is part of the program; it has no files to check\n", flags.dataset));
  const std::string files = checked.files == 1 ? "it" : "all " + counted(checked.files, "file");
  write_out(fmt::format("{}: {} can be read\n", printable(flags.dataset, 200), files));
  if (texts.bad_bytes > 0) write_out(bad_bytes_text(texts) + "; tokenizers take them as they are\n");
}

void refuse_without_text(const Flags& flags, std::string_view purpose) {
  if (!data::is_text_data(flags.dataset)) throw_user_error("there is no text {} to {}", in_quotes(flags.dataset, 200), purpose);
}

// The numbers of a text's tokens, one on each line, as they are found.
void tokens(const Flags& flags) {
  const settings::Recipe recipe = recipe_of(flags);
  refuse_without_text(flags, "cut into tokens");
  const std::unique_ptr<data::Tokenizer> tokenizer = data::open_tokenizer(recipe.tokenizer.value_or("bytes"));
  std::string text;
  if (flags.json) {
    // A list that grows with the text is written as it is found.
    text = print_json({{"data", flags.dataset}, {"tokenizer", tokenizer->name()}, {"tokens", nlohmann::ordered_json::array()}});
    text.resize(text.size() - std::string_view("]}").size());
  }
  std::string_view between;
  const data::TakeTokens take = [&](std::span<const data::Token> some) {
    for (const data::Token token : some) {
      if (flags.json) {
        text += fmt::format("{}{}", std::exchange(between, ","), token);
      } else {
        text += fmt::format("{}\n", token);
      }
    }
    if (text.size() < 65'536) return;
    write_out(text);
    text.clear();
  };
  data::encode_texts(flags.dataset, *tokenizer, take);
  write_out(flags.json ? text + "]}\n" : text);
}

void learn(const Flags& flags) {
  const settings::Recipe recipe = recipe_of(flags);
  if (!flags.out) throw UserError("'snug data learn' needs the folder for the tokenizer, as in --out my_tokenizer");
  refuse_without_text(flags, "learn from");
  const data::BpeDefinition definition = data::learn_bpe(flags.dataset, recipe.vocabulary.value_or(kLearnedTokens));
  const std::filesystem::path folder(*flags.out);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_user_error("folder {} cannot be made: {}", in_quotes(folder.string(), 200), error.message());
  const std::filesystem::path file = folder / "tokenizer.json";
  io::write_text_file(file, data::print_tokenizer_json(definition));
  const auto size = static_cast<std::int64_t>(definition.tokens.size());
  if (flags.json) return write_json({{"data", flags.dataset}, {"tokenizer", file.string()}, {"vocabulary", size}});
  write_out(fmt::format("{}: {} learned from {}\n", file.string(), counted(size, "token"), printable(flags.dataset, 200)));
}

}  // namespace

void run_data(const Flags& flags) {
  if (flags.action.empty() || flags.dataset.empty()) {
    throw UserError(
        "'snug data' needs what to do and with which data, as in 'snug data get cifar10' or 'snug data info embedded'");
  }
  if (flags.action == "get") return get(flags);
  if (flags.action == "info") return info(flags);
  if (flags.action == "check") return check(flags);
  if (flags.action == "tokens") return tokens(flags);
  if (flags.action == "learn") return learn(flags);
  throw_user_error("'snug data' can get, info, check, tokens and learn, not '{}'", flags.action);
}

}  // namespace snug::cli
