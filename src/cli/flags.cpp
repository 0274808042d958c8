#include "cli/flags.h"

#include <CLI/CLI.hpp>

#include "settings/knobs.h"

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

void add_json_flag(CLI::App& app, Flags& flags) { app.add_flag("--json", flags.json, "print one JSON object and nothing else"); }

// The flag of one knob. The last value counts, but of a knob that repeats.
void add_knob(CLI::App& app, Flags& flags, const settings::Knob& knob, const std::string& help) {
  const std::string name(knob.flag);
  const auto take = [&flags, key = std::string(knob.key)](const std::vector<std::string>& texts) { flags.knobs[key] = texts; };
  CLI::Option* option = knob.argument.empty() ? app.add_flag_callback(
                                                    name, [take] { take({"yes"}); }, help)
                                              : app.add_option_function<std::vector<std::string>>(name, take, help)
                                                    ->type_name(std::string(knob.argument))
                                                    ->allow_extra_args(false);
  option->group(std::string(heading_of(knob.topic)));
}
void add_knob(CLI::App& app, Flags& flags, std::string_view key, const std::string& help) {
  add_knob(app, flags, settings::knob(key), help);
}

// Those of a command, and MODEL.
void add_knobs(CLI::App& app, Flags& flags, settings::Offered command) {
  for (const settings::Knob& knob : settings::knobs()) {
    if (!includes(knob.offered, command)) continue;
    if (knob.key == "model") {
      add(app, std::string(knob.flag), flags.model, "", help_of(knob));
    } else {
      add_knob(app, flags, knob, help_of(knob));
    }
  }
  add(app, "--costs", flags.costs, "FILE|none",
      "measured kernel times that plans and predictions rely on; none: a built-in table (default: this machine's, once "
      "measured)");
}

void add_compiler_flags(CLI::App& app, Flags& flags) {
  add_each(app, "--disable-pass", flags.disabled_passes, "PASS",
           "leave out a compiler pass, such as share_bytes; may be repeated");
}

void add_run_folder(CLI::App& app, Flags& flags) {
  add(app, "RUN", flags.folder, "", "the folder of a run, as 'snug train --out' made it");
  app.add_flag("--best", flags.best, "the snapshot of the best evaluation instead of the last one");
}

void add_weights(CLI::App& app, Flags& flags) {
  add(app, "--weights", flags.weights, "FILE",
      "other weights of the same model, in a safetensors file such as 'snug average' and 'snug export' write");
}

void add_moved_tokenizer(CLI::App& app, Flags& flags) {
  add_knob(app, flags, "tokenizer", "where the tokenizer of a language model's run is now, if it has moved");
}

void add_where_it_runs(CLI::App& app, Flags& flags) {
  add_knob(app, flags, "device", "cpu, or cuda for a GPU (default: the run's)");
  add_knob(app, flags, "threads", "number of CPU threads (default: the run's)");
}

}  // namespace

void add_program_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--man", flags.man, "print the manual page snug.1, for man");
  add(app, "--completion", flags.completion, "bash|zsh", "print completion for a shell, as in source <(snug --completion bash)");
}

void add_plan_flags(CLI::App& app, Flags& flags) {
  add_knobs(app, flags, settings::Offered::plan);
  app.add_flag("--measure-costs", flags.measure_costs, "first measure how long this model's kernels take on this machine");
  app.add_flag("--explain", flags.explain, "also show time against memory for other budgets, and what each method saves");
  app.add_flag("--kernels", flags.kernels, "also list which kernel runs each operation, and why others cannot");
  add(app, "--save", flags.save, "FILE", "write the plan to a file, for 'snug train --plan FILE'");
  add_json_flag(app, flags);
  app.add_flag("--timeline", flags.timeline,
               "with --json: also every operation, and where and how long every tensor is in memory");
  add(app, "--html", flags.html, "FILE", "also write the memory report: one page with every tensor, for a browser");
  add(app, "--torch-snapshot", flags.torch_snapshot, "FILE", "also write a memory snapshot for PyTorch's viewer (memory_viz)");
  add(app, "--dump-after", flags.dump_after, "PASS", "print the program (the graph) after a compiler pass, and nothing else");
  add_compiler_flags(app, flags);
}

void add_profile_flags(CLI::App& app, Flags& flags) {
  add_knobs(app, flags, settings::Offered::profile);
  add(app, "--accounting", flags.accounting, "real|paper",
      "what counts as memory: real (what is planned), or paper (the rules of Sohoni et al.; not for a recipe)");
  add_json_flag(app, flags);
  add_compiler_flags(app, flags);
}

void add_train_flags(CLI::App& app, Flags& flags) {
  add_knobs(app, flags, settings::Offered::train);
  add(app, "--out", flags.out, "FOLDER", "folder for settings, metrics, log and snapshots (default: runs/MODEL)");
  app.add_flag("--resume", flags.resume, "continue the run in --out from its last snapshot");
  add(app, "--plan", flags.plan, "FILE",
      "train by this plan, from 'snug plan --save FILE' with the same model, data and --batch");
  add_json_flag(app, flags);
}

void add_sweep_flags(CLI::App& app, Flags& flags) {
  add_knobs(app, flags, settings::Offered::sweep);
  add(app, "--budgets", flags.budgets, "A..B",
      "the smallest and the largest budget, as in 6.7MB..24MB (default: from the smallest possible to what plain training "
      "takes)");
  add(app, "--points", flags.points, "N", "how many budgets, both ends included (default: 20)");
  add(app, "--steps", flags.timed_steps, "N", "timed optimizer steps at each budget; their median counts (default: 5)");
  add_json_flag(app, flags);
  add(app, "--html", flags.html, "FILE", "also write a page with the diagram, for a browser");
}

void add_eval_flags(CLI::App& app, Flags& flags) {
  add_run_folder(app, flags);
  add_weights(app, flags);
  add_knob(app, flags, "data", "other data than the run's own");
  add_moved_tokenizer(app, flags);
  add_where_it_runs(app, flags);
  add_json_flag(app, flags);
}

void add_predict_flags(CLI::App& app, Flags& flags) {
  add_run_folder(app, flags);
  add_weights(app, flags);
  app.add_option("FILES", flags.files, "images, PNG or JPEG; of any size: they are resized as the run's were")->type_name("");
  add(app, "--top", flags.top, "N", "how many classes of each file, the likeliest first (default: 3)");
  add_where_it_runs(app, flags);
  add_json_flag(app, flags);
}

void add_generate_flags(CLI::App& app, Flags& flags) {
  add_run_folder(app, flags);
  add_weights(app, flags);
  add(app, "--prompt", flags.prompt, "TEXT",
      "the beginning of the text (default: none, where the tokenizer has an end of texts)");
  add(app, "--tokens", flags.tokens, "N", "how many tokens to write after it, at most (default: 200)");
  add(app, "--context", flags.context, "N",
      "how many tokens the whole text may have; memory grows with it (default: the length of the examples in training)");
  add(app, "--temperature", flags.temperature, "T",
      "scores are divided by it before one is drawn; 0: always the likeliest token (default: 0.8)");
  add(app, "--top-k", flags.top_k, "K", "draw among the likeliest K tokens; 0: all (default: 0)");
  add(app, "--top-p", flags.top_p, "P", "draw among the fewest tokens that have this share of the probability (default: 1)");
  add_knob(app, flags, "seed", "random seed; the same one writes the same text (default: the run's)");
  add_moved_tokenizer(app, flags);
  add_where_it_runs(app, flags);
  add_json_flag(app, flags);
}

void add_export_flags(CLI::App& app, Flags& flags) {
  add_run_folder(app, flags);
  add(app, "--to", flags.to, "FILE",
      "the safetensors file to write; of a language model also a folder/, for Hugging Face's transformers");
  add_moved_tokenizer(app, flags);
  add_json_flag(app, flags);
}

void add_average_flags(CLI::App& app, Flags& flags) {
  app.add_option("RUN", flags.files, "the folder of a run, as 'snug train --out' made it; or snapshots, files in RUN/snapshots")
      ->type_name("");
  add(app, "--last", flags.last, "N", "of a run: how many of its newest snapshots; 'snug train --keep N' keeps as many");
  add(app, "--to", flags.to, "FILE",
      "the safetensors file to write; of a language model also a folder/, for Hugging Face's transformers");
  add_moved_tokenizer(app, flags);
  add_json_flag(app, flags);
}

void add_bleu_flags(CLI::App& app, Flags& flags) {
  add(app, "FILE", flags.hypotheses, "", "what is scored: translations in UTF-8, a sentence on each line");
  add_each(app, "--reference", flags.references, "FILE",
           "what they should be, line for line; may be repeated, where there are several translations of each sentence");
  add(app, "--tokenize", flags.tokenize, "13a|intl|char|none",
      "what a word is: 13a cuts off punctuation as mteval-v13a does, intl all of Unicode's; char: each character; none: what "
      "lies "
      "between spaces (default: 13a)");
  app.add_flag("--lowercase", flags.lowercase, "without regard to capital letters");
  app.add_flag(
      "--multi-bleu", flags.multi_bleu,
      "for text that is cut into tokens already, as Moses' multi-bleu.perl scores it: words between spaces, no smoothing");
  add_json_flag(app, flags);
}

void add_report_flags(CLI::App& app, Flags& flags) {
  add(app, "RUN", flags.folder, "", "the folder of a run, as 'snug train --out' made it; it may still be training");
  add(app, "--html", flags.html, "FILE", "where the page goes (default: RUN/report.html)");
  app.add_flag("--json", flags.json,
               "print what the page is drawn from as one JSON object, and write no page unless --html is given");
}

void add_data_flags(CLI::App& app, Flags& flags) {
  add(app, "ACTION", flags.action, "get|info|check|tokens|learn",
      "get: download it; info: what is in it; check: read every file of it, and list those that are bad; tokens: the numbers of "
      "a "
      "text's tokens; learn: a tokenizer from a text");
  add(app, "DATA", flags.dataset, "",
      "embedded, cifar10, a folder of images, embedded-text, a text file, or a folder of .txt files");
  add_knob(app, flags, "image_size", "info: size that a folder's images are resized to (default: 32)");
  add_knob(app, flags, "tokenizer", "info, tokens: how a text becomes tokens (default: bytes)");
  add_knob(app, flags, "length", "info: tokens in an example (default: 256)");
  add_knob(app, flags, "vocabulary", "learn: how many tokens (default: 4096)");
  add(app, "--out", flags.out, "FOLDER", "learn: where the tokenizer.json goes");
  add_json_flag(app, flags);
}

}  // namespace snug::cli
