// What every command of relayctl shares: the global options, the exit codes, and how results and errors are said.
//
// One Context lives in main() for one run of the program, on one thread. Command groups add themselves with
// `void add_X_commands(CLI::App& app, Context& context)`; their options live in a shared_ptr that the action owns.
// Results go to stdout, everything else to stderr, so that `-o json` can always be piped.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

/// The contract with scripts: none of these numbers may ever mean something else.
enum class ExitCode : int {
  ok = 0,
  failed = 1,        ///< the thing asked for was tried and did not work; also `plan diff`: differs
  usage = 2,         ///< the command line is wrong
  invalid = 3,       ///< configuration, plan, certificate or checkpoint is invalid
  unreachable = 4,   ///< the daemon cannot be reached, or refuses this caller
  timed_out = 5,     ///< waited as long as was asked
  precondition = 6,  ///< no such version, conflict, wrong state
  fenced = 8,        ///< a higher epoch took over
  health_warn = 10,
  health_err = 11,
};

enum class OutputFormat : std::uint8_t { text, wide, json, name };

enum class Style : std::uint8_t { plain, good, warning, bad, faint, strong };

/// What the process finds around it; main() looks, so that nothing deeper reads the environment.
struct Surroundings {
  bool no_color = false;          ///< NO_COLOR is set and not empty, or TERM is "dumb"
  bool stdout_terminal = false;
  bool stderr_terminal = false;
  bool utf8 = true;               ///< the locale's character set can show bars and tree lines
};

struct Context {
  OutputFormat format = OutputFormat::text;
  bool ascii = false;
  bool no_color = false;
  bool utc = false;
  bool quiet = false;
  int verbose = 0;
  std::chrono::milliseconds timeout{10'000};  ///< for one answer of the daemon
  bool timeout_given = false;                 ///< on the command line; work that is known to be long waits longer if not
  std::string socket = "/run/relayd/admin.sock";
  std::string addr;  ///< HOST:PORT of a remote daemon; empty: use the socket
  std::string cert;
  std::string key;
  std::string ca;

  Surroundings surroundings;
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  mutable bool answered = false;  ///< something is on stdout already; what is said of it is no document of its own
  std::function<int()> action;    ///< what the command line asked for; set by command()

  [[nodiscard]] bool json() const { return format == OutputFormat::json; }
  [[nodiscard]] bool wide() const { return format == OutputFormat::wide; }
  /// Bars and tree lines in plain ASCII: asked for, or the terminal cannot show anything else.
  [[nodiscard]] bool plain_ascii() const { return ascii || !surroundings.utf8; }
  [[nodiscard]] bool colored() const {
    return !no_color && !surroundings.no_color && surroundings.stdout_terminal && format != OutputFormat::json;
  }
  /// `text` in the colour of `style`, or unchanged when colours are off.
  [[nodiscard]] std::string paint(Style style, std::string_view text) const;

  /// Writes a result to stdout as it is; the caller ends its lines.
  void print(std::string_view text) const;
  /// Says something in passing, on stderr, with a line end; nothing with -q.
  void note(std::string_view text) const;
  /// As note(), only with -v.
  void detail(std::string_view text) const;

  /// Prints `error: WHAT: WHY. Try: WHAT NEXT` on stderr and returns the code as the command's result:
  /// `return context.fail(ExitCode::invalid, "cannot read /srv/a", "no such directory", "check the path");`
  /// No full stop at the end of the parts; an empty `why` or `try_next` is left out. With -o json the same goes to
  /// stdout as a document, unless the command has answered there: a reader of JSON never has to take the line apart.
  int fail(ExitCode code, std::string_view what, std::string_view why, std::string_view try_next) const;
};

constexpr int to_int(ExitCode code) noexcept { return static_cast<int>(code); }

/// Adds -o, --socket, --timeout and the others of the contract; they may stand before or after the command.
void add_global_options(CLI::App& app, Context& context);

/// Makes `run` what happens when the command line names `sub`; its result is the exit code.
/// The action runs after the whole line is parsed, so every global option is known.
void command(CLI::App& sub, Context& context, std::function<int()> run);

/// `error: WHAT: WHY. Try: WHAT NEXT`, without a line end.
[[nodiscard]] std::string error_line(std::string_view what, std::string_view why, std::string_view try_next);

}  // namespace deltarelay::relayctl
