#include "cli/completion.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/argument_values.h"

namespace snug::cli {

namespace {

constexpr std::array<std::string_view, 2> kShells{"bash", "zsh"};

std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

// "--batch"; of --help also "-h".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : names_of(*option)) flags.push_back(std::move(name));
  }
  return flags;
}

std::string_view word_for(Paths paths) {
  switch (paths) {
    case Paths::none:
      return "";
    case Paths::files:
      return "files";
    case Paths::folders:
      return "folders";
    case Paths::recipes:
      return "recipes";
  }
  throw InternalError("paths without a word");
}

// In single quotes, for both shells.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

constexpr std::string_view kBashHead = R"(# Completion of snug in bash; made by 'snug --completion bash'.

# What a flag or the n-th argument of a command takes: words, and paths of a kind. Fails where it takes nothing.
_snug_values() {
  words= paths= list=
  case $1 in
)";

constexpr std::string_view kBashTail = R"sh(    *) return 1 ;;
  esac
}

_snug() {
  local current=${COMP_WORDS[COMP_CWORD]} command= flag= words= paths= list= before= place=0 word i found=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then # bash takes --flag=value apart
      continue
    elif [[ $word == ':' ]]; then # and optimal:24MB
      ((++i))
    elif [[ $flag ]]; then
      flag=
    elif [[ $word == -* ]]; then
      if _snug_values "$command:$word"; then flag=$word; fi
    elif [[ ! $command ]]; then
      command=$word
    else
      ((++place))
    fi
  done
  if [[ $current == '=' ]]; then current=; fi
  words= paths= list=
  if [[ $flag ]]; then
    _snug_values "$command:$flag"
  elif [[ ! $command && $current != -* ]]; then
    words=$_snug_commands
  elif [[ $current == -* ]] || ! _snug_values "$command:$((place + 1))"; then
    words=$(_snug_flags "$command")
  fi
  if [[ $list && $current == *,* ]]; then
    before=${current%,*},
    current=${current##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$current")
  if [[ $list ]]; then compopt -o nospace 2>/dev/null; fi
  if [[ ! $paths ]]; then return; fi
  compopt -o filenames 2>/dev/null
  case $paths in
    files) mapfile -t found < <(compgen -f -- "$current") ;;
    folders) mapfile -t found < <(compgen -d -- "$current") ;;
    recipes) mapfile -t found < <(compgen -f -X '!*.toml' -- "$current"; compgen -d -- "$current") ;;
  esac
  COMPREPLY+=("${found[@]}")
}

complete -F _snug snug
)sh";

// What a word of `case` stands for in bash: "train:--precision", or "train:1" for the first argument.
struct BashCases {
  std::map<std::string, std::vector<std::string>> patterns_of;  // by what is done
  std::vector<std::string> last;                                // further arguments of a kind: after the numbered ones

  void add(const CLI::App& app, const std::string& command) {
    int place = 0;
    for (const CLI::Option* option : app.get_options()) {
      if (!takes_value(*option)) continue;
      const std::string done = action(values_of(*option));
      if (!option->get_positional()) {
        for (const std::string& name : names_of(*option)) patterns_of[done].push_back(fmt::format("{}:{}", command, name));
        continue;
      }
      patterns_of[done].push_back(fmt::format("{}:{}", command, ++place));
      if (option->get_items_expected_max() > 1) last.push_back(fmt::format("    {}:[0-9]*) {};;\n", command, done));
    }
  }

  static std::string action(const ArgumentValues& values) {
    std::string done;
    if (!values.words.empty()) done += fmt::format("words={} ", shell_quoted(fmt::format("{}", fmt::join(values.words, " "))));
    if (values.paths != Paths::none) done += fmt::format("paths={} ", word_for(values.paths));
    if (values.is_list) done += "list=1 ";
    return done;
  }
};

std::string bash(const CLI::App& root) {
  BashCases cases;
  cases.add(root, "");
  std::vector<std::string> names;
  std::string flags = fmt::format("    '') echo {} ;;\n", fmt::join(flags_of(root), " "));
  for (const CLI::App* command : commands_of(root)) {
    names.push_back(command->get_name());
    cases.add(*command, command->get_name());
    flags += fmt::format("    {}) echo {} ;;\n", command->get_name(), fmt::join(flags_of(*command), " "));
  }
  std::string out(kBashHead);
  for (const auto& [done, patterns] : cases.patterns_of) out += fmt::format("    {}) {};;\n", fmt::join(patterns, " | "), done);
  for (const std::string& line : cases.last) out += line;
  std::string tail(kBashTail);
  const std::string lists = fmt::format("_snug_commands={}\n\n_snug_flags() {{\n  case $1 in\n{}  esac\n}}\n\n",
                                        shell_quoted(fmt::format("{}", fmt::join(names, " "))), flags);
  tail.insert(tail.find("_snug() {"), lists);
  return out + tail;
}

constexpr std::string_view kZshHead = R"(#compdef snug
# Completion of snug in zsh; made by 'snug --completion zsh'.

# Paths of a kind, and words.
_snug_or() {
  local kind=$1
  shift
  (( $# )) && compadd -- "$@"
  case $kind in
    folders) _files -/ ;;
    recipes) _files -g '*.toml' ;;
    *) _files ;;
  esac
}

_snug() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C \
)";

constexpr std::string_view kZshTail = R"(      esac
      ;;
  esac
}

if [[ $funcstack[1] == _snug ]]; then
  _snug "$@"
else
  compdef _snug snug
fi
)";

// What _arguments reads as the end of a description is left out of it.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ':') result += '\\';
    result += c == '[' ? '(' : c == ']' ? ')' : c;
  }
  return result;
}

std::string zsh_action(const ArgumentValues& values, std::string_view name) {
  const std::string words = fmt::format("{}", fmt::join(values.words, " "));
  if (values.is_list) return fmt::format(" _values -s , {} {}", name, words);
  if (values.paths != Paths::none) return fmt::format(" _snug_or {} {}", word_for(values.paths), words);
  return words.empty() ? "" : fmt::format("({})", words);
}

// The lines of one call of _arguments.
std::vector<std::string> zsh_arguments(const CLI::App& app) {
  std::vector<std::string> lines;
  int place = 0;
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const std::string value = type.empty() ? option->get_name(option->get_positional()) : type;
    const std::string message = zsh_text(value) + ":" + zsh_action(values_of(*option), value);
    if (option->get_positional()) {
      const bool repeats = option->get_items_expected_max() > 1;
      lines.push_back(shell_quoted(fmt::format("{}:{}", repeats ? "*" : fmt::format("{}", ++place), message)));
      continue;
    }
    for (const std::string& name : names_of(*option)) {
      const std::string description = zsh_text(option->get_description());
      lines.push_back(shell_quoted(takes_value(*option) ? fmt::format("*{}=[{}]:{}", name, description, message)
                                                        : fmt::format("{}[{}]", name, description)));
    }
  }
  return lines;
}

std::string zsh(const CLI::App& root) {
  std::string out(kZshHead);
  for (const std::string& line : zsh_arguments(root)) out += fmt::format("    {} \\\n", line);
  out += "    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command)\n      local -a commands=(\n";
  for (const CLI::App* command : commands_of(root))
    out += fmt::format("        {}\n", shell_quoted(command->get_name() + ":" + zsh_text(command->get_description())));
  out += "      )\n      _describe command commands\n      ;;\n    argument)\n      case $line[1] in\n";
  for (const CLI::App* command : commands_of(root)) {
    out += fmt::format("        {})\n          _arguments \\\n            {}\n          ;;\n", command->get_name(),
                       fmt::join(zsh_arguments(*command), " \\\n            "));
  }
  return out + std::string(kZshTail);
}

}  // namespace

std::string completion(const CLI::App& root, std::string_view shell) {
  if (shell == "bash") return bash(root);
  if (shell == "zsh") return zsh(root);
  throw_user_error("--completion is for {}, not '{}'{}", fmt::join(kShells, " or "), shell, did_you_mean(shell, kShells));
}

}  // namespace snug::cli
