#include <filesystem>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "data/dataset.h"
#include "data/images/get_cifar10.h"
#include "report/text.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

void get(const Flags& flags) {
  if (flags.dataset == "embedded") throw UserError("the embedded data is part of the program; there is nothing to download");
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

void info(const Flags& flags) {
  settings::Recipe recipe;
  for (const auto& [key, texts] : flags.knobs) take(settings::knob(key), texts, recipe);
  const std::unique_ptr<data::Dataset> dataset = data::open_dataset(flags.dataset, {.image_size = recipe.image_size.value_or(0)});
  const data::Description& data = dataset->description();
  note_each(data.notes);
  if (flags.json) {
    const nlohmann::ordered_json json{{"data", data.name},
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
    return write_json(json);
  }
  std::string out =
      fmt::format("{}: {} training and {} test images of {}x{} with {}\n", data.name, report::format_count(data.train_examples),
                  report::format_count(data.test_examples), data.height, data.width, counted(data.channels, "channel"));
  out += counted(data.classes, "class", "classes") + ":";
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < data.class_names.size() && i < kShown; ++i) out += fmt::format(" {}", data.class_names[i]);
  if (data.class_names.size() > kShown) out += " ...";
  out += "\nper channel, of 0..255:";
  for (std::size_t c = 0; c < data.mean.size(); ++c) out += fmt::format(" {:.1f} +- {:.1f}", data.mean[c], data.std[c]);
  write_out(out + "\n");
}

// Bad files are listed as they are found, but for JSON, which is one object.
void check(const Flags& flags) {
  nlohmann::ordered_json bad = nlohmann::ordered_json::array();
  const data::CheckedFiles checked =
      data::check_dataset(flags.dataset, [&](const std::filesystem::path& file, const std::string& reason) {
        if (flags.json) {
          bad.push_back({{"file", file.string()}, {"reason", reason}});
        } else {
          write_out(printable(reason, reason.size()) + "\n");
        }
      });
  if (flags.json) write_json({{"data", flags.dataset}, {"files", checked.files}, {"bad", checked.bad}, {"bad_files", bad}});
  if (checked.bad > 0) {
    throw_user_error("{} of the {} files of {} cannot be used; repair or remove {}", report::format_count(checked.bad),
                     report::format_count(checked.files), printable(flags.dataset, 200), checked.bad == 1 ? "it" : "them");
  }
  if (flags.json) return;
  if (checked.files == 0) return write_out(fmt::format("{} is part of the program; it has no files to check\n", flags.dataset));
  write_out(fmt::format("{}: all {} can be read\n", printable(flags.dataset, 200), counted(checked.files, "file")));
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
  throw_user_error("'snug data' can get, info and check, not '{}'", flags.action);
}

}  // namespace snug::cli
