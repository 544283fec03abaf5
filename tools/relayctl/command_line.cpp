// See command_line.hpp.
#include "tools/relayctl/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <utility>

#include "config/nearest_name.hpp"
#include "config/yaml_doc.hpp"
#include "tools/relayctl/joined.hpp"

namespace deltarelay::relayctl {
namespace {

using config::did_you_mean;
using config::shown;

constexpr std::size_t completions_max = 3;

/// The command that was being read when the line failed: the last one that was named.
const CLI::App& named_last(const CLI::App& app) {
  const CLI::App* at = &app;
  for (auto taken = at->get_subcommands(); !taken.empty(); taken = at->get_subcommands()) at = taken.back();
  return *at;
}

/// "relayctl cert issue"
std::string path_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : path_of(*command.get_parent()) + " " + command.get_name();
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

std::vector<std::string_view> views_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

/// "a, b or c"
std::string listed(const std::vector<std::string>& names) {
  if (names.size() < 2) return joined(names, "");
  return joined({names.begin(), names.end() - 1}, ", ") + " or " + names.back();
}

/// Where else in the whole tool a command of this name is: `make` is `relayctl checkpoint make`.
void find_elsewhere(const CLI::App& app, std::string_view word, std::vector<std::string>& paths) {
  for (const CLI::App* sub : commands_of(app)) {
    if (sub->get_name() == word) paths.push_back("\"" + path_of(*sub) + "\"");
    find_elsewhere(*sub, word, paths);
  }
}

std::string unknown_command(const CLI::App& root, const CLI::App& at, const std::string& word) {
  const std::vector<std::string> names = names_of(commands_of(at));
  const std::string what = "unknown command " + shown(word);
  std::vector<std::string> near;
  for (const std::string& name : names)
    if (word.size() > 1 && name.compare(0, word.size(), word) == 0) near.push_back("\"" + name + "\"");
  if (near.empty()) {
    if (const std::string hint = did_you_mean(word, views_of(names)); !hint.empty()) return what + hint;
    find_elsewhere(root, word, near);
  }
  if (!near.empty() && near.size() <= completions_max) return what + " (did you mean " + listed(near) + "?)";
  return at.get_parent() == nullptr ? what : fmt::format("{}; `{}` has {}", what, path_of(at), joined(names, ", "));
}

/// Long names without their dashes, of the command and of those it stands in: any of them may be given here.
std::vector<std::string> long_options(const CLI::App& at) {
  std::vector<std::string> names;
  for (const CLI::App* app = &at; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

std::string unknown_option(const CLI::App& at, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string bare = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  const std::vector<std::string> names = long_options(at);
  const std::string_view near = config::nearest_name(bare, views_of(names));
  const std::string hint = near.empty() ? "" : fmt::format(" (did you mean \"--{}\"?)", near);
  return "unknown option " + shown(name) + hint;
}

/// How positional arguments are written in a usage line: "NAME", "[NODE]".
std::string arguments_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options(
           [](const CLI::Option* candidate) { return !candidate->nonpositional() && candidate->get_positional(); })) {
    const std::string name = option->get_name(true);
    names.push_back(option->get_required() ? name : "[" + name + "]");
  }
  return names.empty() ? "no argument" : joined(names, " ") + " and nothing else";
}

std::string help_of_what_was_typed(const CLI::App& app) {
  return path_of(named_last(app)) + " --help";
}

}  // namespace

std::string why_unread(const CLI::App& app, const CLI::ParseError& wrong) {
  const CLI::App& at = named_last(app);
  const std::vector<std::string> left = app.remaining(true);
  // A word that nothing took explains more than what is missing because of it.
  const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&wrong);
  const auto* required = dynamic_cast<const CLI::RequiredError*>(&wrong);
  if (!left.empty() && (extras != nullptr || required != nullptr)) {
    const std::string& word = left.front();
    if (word.size() > 1 && word.front() == '-') return unknown_option(at, word);
    if (!commands_of(at).empty()) return unknown_command(app, at, word);
    return fmt::format("unexpected argument {}; `{}` takes {}", shown(word), path_of(at), arguments_of(at));
  }
  if (required != nullptr && !commands_of(at).empty())
    return fmt::format("`{}` needs one of {}", path_of(at), joined(names_of(commands_of(at)), ", "));
  return wrong.what();
}

std::function<std::string(const std::string&)> one_of(std::vector<std::string_view> choices) {
  return [choices = std::move(choices)](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
    return shown(text) + " is not " + listed({choices.begin(), choices.end()}) + did_you_mean(text, choices);
  };
}

int run_command_line(CLI::App& app, Context& context, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    return context.fail(ExitCode::usage, "cannot read the command line", why_unread(app, wrong),
                        help_of_what_was_typed(app));
  }
  if (!context.action) {
    return context.fail(ExitCode::usage, "no command given", "relayctl needs to be told what to do", "relayctl --help");
  }
  try {
    const int code = context.action();
    if (std::fflush(context.out) != 0) {
      return context.fail(ExitCode::failed, "cannot write the result", "stdout was closed or is full", "");
    }
    return code;
  } catch (const std::exception& escaped) {
    return context.fail(ExitCode::failed, "this command ended early", escaped.what(), "the same command with -v");
  }
}

}  // namespace deltarelay::relayctl
