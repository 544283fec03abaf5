// `relayctl completion bash|zsh`: a script that completes commands and options. Made from the command line's own
// description, so it cannot fall behind it.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;

/// To be added last: the script knows the commands that `app` has when it runs.
void add_completion_command(CLI::App& app, Context& context);

/// Words are completed from fixed lists; whatever takes a file is left to the shell.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

}  // namespace deltarelay::relayctl
