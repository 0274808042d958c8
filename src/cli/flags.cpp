#include "cli/flags.h"

#include <charconv>

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace snug::cli {

namespace {

template <typename T>
void add(CLI::App& app, const std::string& name, T& value, const std::string& type, const std::string& description) {
  app.add_option(name, value, description)->type_name(type)->take_last();
}

void add_each(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& type,
              const std::string& description) {
  app.add_option(name, values, description)->type_name(type)->allow_extra_args(false);
}

// Which program: the model and how it is trained.
void add_program_flags(CLI::App& app, Flags& flags) {
  add(app, "MODEL", flags.model, "", "a model of the zoo, see below");
  add(app, "--batch", flags.batch, "N", "examples of one step");
  add(app, "--microbatch", flags.microbatch, "N", "examples in memory at a time (default: the batch)");
  add(app, "--checkpoint", flags.checkpoint, "STRATEGY", "what backward recomputes instead of keeping: none");
  add(app, "--precision", flags.precision, "TYPE", "what values are stored in: fp32");
  add(app, "--classes", flags.classes, "N", "outputs of the classifier (default: the model's own)");
  add(app, "--image-size", flags.image_size, "N", "height and width of images (default: the model's own)");
  add_each(app, "--freeze", flags.frozen, "PREFIX", "parameters so named are not trained; may be repeated");
  add(app, "--threads", flags.threads, "N", "threads that will run it (default: all cores)");
}

void add_compiler_flags(CLI::App& app, Flags& flags) {
  add(app, "--workspace-limit", flags.workspace_limit, "BYTES", "most scratch of one kernel, such as 256KB");
  add_each(app, "--disable-pass", flags.disabled_passes, "PASS", "leave out a memory method; may be repeated");
  add_each(app, "--enable-pass", flags.enabled_passes, "PASS", "one that costs bytes, such as prepack_weights");
}

}  // namespace

void add_plan_flags(CLI::App& app, Flags& flags) {
  add_program_flags(app, flags);
  app.add_flag("--kernels", flags.kernels, "list what runs each op, and which kernels refused");
  app.add_flag("--json", flags.json, "print one JSON object and nothing else");
  add(app, "--dump-after", flags.dump_after, "PASS", "print the program after a pass, and nothing else");
  add_compiler_flags(app, flags);
}

void add_profile_flags(CLI::App& app, Flags& flags) {
  add_program_flags(app, flags);
  add(app, "--accounting", flags.accounting, "RULES", "what counts as memory: real");
  app.add_flag("--json", flags.json, "print one JSON object and nothing else");
  add_compiler_flags(app, flags);
}

std::int64_t parse_count(std::string_view flag, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw_user_error("{} takes a whole number from {} to {}, not '{}'", flag, least, most, text);
  }
  return value;
}

void require_value(std::string_view flag, std::string_view value, std::string_view possible) {
  if (value != possible) throw_user_error("{} '{}' is not possible; so far there is only '{}'", flag, value, possible);
}

}  // namespace snug::cli
