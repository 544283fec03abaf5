// From the words of a command line to an action that ran, or to an error that names the word and the way out.
//
// CLI11 says that something "was not expected"; whoever types at three in the morning wants to know what was meant. So
// every word that nothing takes is looked for among the names that could have stood in its place.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/relayctl/context.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace deltarelay::relayctl {

/// Parses the line and runs its action. Exceptions end here, as `failed`.
int run_command_line(CLI::App& app, Context& context, int argc, const char* const* argv);

/// Why the line could not be read, in one phrase: `unknown option "--chek" (did you mean "--check"?)`.
/// REQUIRES that `app` is as the failed parse left it: what it did take tells where the word stood.
[[nodiscard]] std::string why_unread(const CLI::App& app, const CLI::ParseError& wrong);

/// A check for CLI::Option::check(): a refused value is told the choices and the nearest of them.
[[nodiscard]] std::function<std::string(const std::string&)> one_of(std::vector<std::string_view> choices);

}  // namespace deltarelay::relayctl
