// See completion_command.hpp. zsh runs the bash script through its own bashcompinit.
#include "tools/relayctl/completion_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "tools/relayctl/context.hpp"
#include "tools/relayctl/joined.hpp"

namespace deltarelay::relayctl {
namespace {

std::vector<std::string> option_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

std::vector<std::string> command_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(sub->get_name());
  return words;
}

/// One `case` line a command; the path of commands is matched whole.
void add_cases(const CLI::App& app, const std::string& path, std::string& cases) {
  std::vector<std::string> words = command_words(app);
  const std::vector<std::string> options = option_words(app);
  cases += fmt::format("    '{}') commands='{}'; options='{}' ;;\n", path, joined(words, " "), joined(options, " "));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    add_cases(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), cases);
  }
}

std::vector<std::string> with_value(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string cases;
  add_cases(app, "", cases);
  // The path grows by the words that are commands where they stand; an option's value is not one of them.
  return fmt::format(R"sh(# bash completion of relayctl; load it with: source <(relayctl completion bash)
_relayctl_words() {{
  case "$1" in
{0}    *) commands=''; options='' ;;
  esac
}}
_relayctl() {{
  local commands options path='' word at current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  _relayctl_words ''
  local globals="$options"
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="${{COMP_WORDS[at]}}"
    case " {1} " in *" ${{COMP_WORDS[at-1]}} "*) continue ;; esac
    case " $commands " in *" $word "*) path="${{path:+$path }}$word"; _relayctl_words "$path" ;; esac
  done
  COMPREPLY=()
  case "$previous" in
    -o|--output) COMPREPLY=($(compgen -W 'text wide json name' -- "$current")); return ;;
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options $globals" -- "$current")); return ;;
  esac
  case "$path" in
    wait) commands='committed converged healthy' ;;
  esac
  if [ -n "$commands" ]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  fi
}}
complete -o default -F _relayctl relayctl
)sh",
                     cases, joined(with_value(app), " "));
}

void add_completion_command(CLI::App& app, Context& context) {
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes commands and options");
  completion->require_subcommand(1);
  CLI::App* bash = completion->add_subcommand("bash", "For bash: source <(relayctl completion bash)");
  command(*bash, context, [&app, &context] {
    context.print(bash_completion(app));
    return to_int(ExitCode::ok);
  });
  CLI::App* zsh = completion->add_subcommand("zsh", "For zsh: source <(relayctl completion zsh)");
  command(*zsh, context, [&app, &context] {
    context.print("autoload -Uz +X compinit bashcompinit && compinit && bashcompinit\n" + bash_completion(app));
    return to_int(ExitCode::ok);
  });
}

}  // namespace deltarelay::relayctl
