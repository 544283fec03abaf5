// Global options, error lines and the one place where a command is run. See context.hpp.
#include "tools/relayctl/context.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/humanize.hpp"

namespace deltarelay::relayctl {
namespace {

std::string_view without_stop(std::string_view text) {
  while (!text.empty() && (text.back() == '.' || text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

std::string_view escape_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::good:
      return "\x1b[32m";
    case Style::warning:
      return "\x1b[33m";
    case Style::bad:
      return "\x1b[31m";
    case Style::faint:
      return "\x1b[2m";
    case Style::strong:
      return "\x1b[1m";
  }
  return "";
}

/// What a peer said may end here, and a terminal obeys escape sequences.
std::string harmless(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
  }
  return text;
}

/// For stderr, where nothing is painted.
void write_line(std::FILE* to, std::string_view said) {
  const std::string text = harmless(std::string(said));
  std::fwrite(text.data(), 1, text.size(), to);
  std::fputc('\n', to);
}

}  // namespace

std::string Context::paint(Style style, std::string_view text) const {
  if (!colored() || style == Style::plain) return std::string(text);
  std::string painted(escape_of(style));
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

void Context::print(std::string_view text) const {
  answered = answered || !text.empty();
  std::fwrite(text.data(), 1, text.size(), out);
}

void Context::note(std::string_view text) const {
  if (!quiet) write_line(err, text);
}

void Context::detail(std::string_view text) const {
  if (verbose > 0 && !quiet) write_line(err, text);
}

std::string error_line(std::string_view what, std::string_view why, std::string_view try_next) {
  std::string line = "error: ";
  line += without_stop(what);
  if (const auto reason = without_stop(why); !reason.empty()) {
    line += ": ";
    line += reason;
  }
  if (const auto next = without_stop(try_next); !next.empty()) {
    line += ". Try: ";
    line += next;
  }
  return harmless(std::move(line));
}

int Context::fail(ExitCode code, std::string_view what, std::string_view why, std::string_view try_next) const {
  if (json() && !answered) {
    const relay::admin::ErrorDocument document{std::string(what), std::string(why), std::string(try_next),
                                               to_int(code)};
    print(relay::admin::indented_json(relay::admin::to_json(document)));
  }
  std::fflush(out);
  write_line(err, error_line(what, why, try_next));
  return to_int(code);
}

void add_global_options(CLI::App& app, Context& context) {
  static const std::map<std::string, OutputFormat> formats{{"text", OutputFormat::text},
                                                           {"wide", OutputFormat::wide},
                                                           {"json", OutputFormat::json},
                                                           {"name", OutputFormat::name}};
  // Inherited by the commands added later, so the global options may follow the command's name.
  app.fallthrough();
  app.add_option("--socket", context.socket, "Unix socket of the local relayd")
      ->type_name("PATH")
      ->capture_default_str();
  auto* addr = app.add_option("--addr", context.addr, "HOST:PORT of a remote relayd, instead of the socket");
  app.add_option("--cert", context.cert, "client certificate for --addr")->needs(addr);
  app.add_option("--key", context.key, "private key for --addr")->needs(addr);
  app.add_option("--ca", context.ca, "certificate authority for --addr");
  app.add_option_function<std::string>(
         "-o,--output", [&context](const std::string& text) { context.format = formats.at(text); },
         "text, wide, json or name")
      ->check(one_of({"text", "wide", "json", "name"}))
      ->type_name("FORMAT")
      ->default_str("text");
  app.add_option_function<std::string>(
         "--timeout",
         [&context](const std::string& text) {
           const auto parsed = parse_duration(text);
           if (!parsed || parsed->count() == 0) {
             throw CLI::ValidationError("--timeout", "\"" + text + "\" is no duration like 500ms, 10s or 2m");
           }
           context.timeout = *parsed;
           context.timeout_given = true;
         },
         "how long one answer of the daemon may take")
      ->type_name("DURATION")
      ->default_str("10s");
  app.add_flag("--ascii", context.ascii, "draw trees and bars in plain ASCII");
  app.add_flag("--no-color", context.no_color, "no colours (NO_COLOR does the same)");
  app.add_flag("--utc", context.utc, "show times in UTC");
  app.add_flag("-q,--quiet", context.quiet, "results and errors only");
  app.add_flag("-v,--verbose", context.verbose, "say more on stderr");
}

void command(CLI::App& sub, Context& context, std::function<int()> run) {
  sub.callback([&context, run = std::move(run)] { context.action = run; });
}

}  // namespace deltarelay::relayctl
