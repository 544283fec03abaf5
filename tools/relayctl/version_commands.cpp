// `versions` and `version`: what the fleet has held, and what each refit took. Without a version, relayctl's own.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tools/relayctl/arguments.hpp"
#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/render_versions.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::VersionDocument;
using relay::admin::VersionsDocument;

std::string number_line(relay::admin::Version version) {
  return std::to_string(codec::raw(version)) + "\n";
}

int versions(const Context& context) {
  const auto answer = Daemon(context).get<VersionsDocument>("/v1/versions");
  if (answer.error) return fail(context, *answer.error);
  if (context.json()) {
    print_json(context, answer.body);
  } else if (context.format == OutputFormat::name) {
    for (const auto& row : answer.document.versions) context.print(number_line(row.version));
  } else {
    context.print(versions_text(context, answer.document));
  }
  return to_int(ExitCode::ok);
}

int own_version(const Context& context) {
  if (context.json()) {
    context.print(
        "{\n  \"schema\": \"deltarelay.program/1\",\n  \"program\": \"relayctl\",\n  \"version\": \"" DELTARELAY_VERSION
        "\"\n}\n");
  } else {
    context.print("relayctl " DELTARELAY_VERSION "\n");
  }
  return to_int(ExitCode::ok);
}

int version(const Context& context, std::optional<relay::admin::Version> asked) {
  if (!asked) return own_version(context);
  const auto answer = Daemon(context).get<VersionDocument>("/v1/versions/" + std::to_string(codec::raw(*asked)));
  if (answer.error) return fail(context, *answer.error);
  if (context.json()) {
    print_json(context, answer.body);
  } else if (context.format == OutputFormat::name) {
    context.print(number_line(answer.document.version.version));
  } else {
    context.print(version_page(context, answer.document));
  }
  return to_int(ExitCode::ok);
}

}  // namespace

void add_version_commands(CLI::App& app, Context& context) {
  CLI::App* all = app.add_subcommand("versions", "History: base, bytes, change rate, time and result of each version");
  command(*all, context, [&context] { return versions(context); });

  auto asked = std::make_shared<std::optional<relay::admin::Version>>();
  CLI::App* one = app.add_subcommand("version", "The page of one version; without VERSION, relayctl's own version");
  add_version_argument(*one, "VERSION", *asked, "as `relayctl versions` lists it");
  command(*one, context, [&context, asked] { return version(context, *asked); });
}

}  // namespace deltarelay::relayctl
