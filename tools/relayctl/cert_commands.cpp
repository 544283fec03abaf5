#include "tools/relayctl/cert_commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "relay/net/certificate.hpp"
#include "relay/net/certificate_check.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/count_option.hpp"
#include "tools/relayctl/failures.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
namespace net = relay::net;
using Clock = std::chrono::system_clock;

constexpr auto expires_soon = std::chrono::hours(24 * 30);

struct CertOptions {
  std::string directory, mesh, ca, node, role = "relay", out, file, cert, key;
  unsigned days = 365;
};

std::string time_text(Clock::time_point at, bool utc) {
  return format_time(std::chrono::time_point_cast<std::chrono::seconds>(at), utc);
}

const char* state_of(const net::CertificateInfo& info, Clock::time_point now) {
  if (now >= info.valid_until) return "expired";
  return now < info.valid_from ? "not_yet_valid" : "valid";
}

json::object info_json(const net::CertificateInfo& info) {
  json::object out;
  out["schema"] = "deltarelay.certificate/1";
  out["is_ca"] = info.is_ca;
  if (info.identity) {
    out["mesh"] = info.identity->mesh;
    out["role"] = net::to_string(info.identity->role);
    out["node"] = info.identity->node;
    out["uri"] = info.identity->uri();
  } else if (!info.mesh_of_ca.empty()) {
    out["mesh"] = info.mesh_of_ca;
  }
  json::array names;
  for (const std::string& name : info.dns_names) names.emplace_back(name);
  out["dns_names"] = std::move(names);
  out["subject"] = info.subject;
  out["issuer"] = info.issuer;
  out["serial"] = info.serial;
  out["sha256"] = info.sha256;
  out["valid_from"] = time_text(info.valid_from, true);
  out["valid_until"] = time_text(info.valid_until, true);
  out["state"] = state_of(info, Clock::now());
  return out;
}

std::string info_text(const Context& context, const net::CertificateInfo& info) {
  const auto now = Clock::now();
  Table table({{""}, {""}});
  if (info.identity) {
    table.add({"node", info.identity->node});
    table.add({"role", std::string(net::to_string(info.identity->role))});
    table.add({"mesh", info.identity->mesh});
  } else if (info.is_ca) {
    table.add({"authority", info.mesh_of_ca.empty() ? "not of a mesh" : "of mesh " + info.mesh_of_ca});
  } else {
    table.add({"node", "no identity: not made by `relayctl cert issue`"});
  }
  for (const std::string& name : info.dns_names) table.add({"dns", name});
  table.add({"subject", info.subject});
  table.add({"issuer", info.issuer});
  table.add({"serial", info.serial});
  table.add({"sha256", info.sha256});
  table.add({"valid from", time_text(info.valid_from, context.utc)});
  const std::string_view state = state_of(info, now);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(info.valid_until - now);
  std::string until = time_text(info.valid_until, context.utc);
  if (state == "expired")
    until += "  " + context.paint(Style::bad, "expired " + human_age(-left) + " ago");
  else if (state == "not_yet_valid")
    until += "  " + context.paint(Style::bad, "not yet valid");
  else
    until += "  " + context.paint(left < expires_soon ? Style::warning : Style::good, human_age(left) + " left");
  table.add({"valid until", until});
  return table.text();
}

int report_files(const Context& context, const fs::path& dir, std::initializer_list<std::array<const char*, 2>> files,
                 const net::CertificateInfo& info) {
  if (context.json()) {
    json::object out = info_json(info);
    json::array paths;
    for (const auto& file : files) paths.emplace_back((dir / file[0]).string());
    out["files"] = std::move(paths);
    context.print(json::serialize(out) + "\n");
  } else if (context.format == OutputFormat::name) {
    for (const auto& file : files) context.print((dir / file[0]).string() + "\n");
  } else if (!context.quiet) {
    Table table({{""}, {""}});
    for (const auto& file : files) table.add({(dir / file[0]).string(), file[1]});
    context.print(table.text());
  }
  return to_int(ExitCode::ok);
}

int init_ca(const Context& context, const CertOptions& options) {
  if (auto made = net::init_ca(options.directory, options.mesh); !made)
    return fail(context, "cannot make the authority of mesh \"" + options.mesh + "\"", made.error());
  const fs::path dir = options.directory;
  auto info = net::inspect(dir / "ca.crt");
  if (!info) return fail(context, "cannot read back the authority", info.error());
  return report_files(context, dir,
                      {{"ca.crt", "authority: copy it to every node"},
                       {"ca.key", "signs certificates: keep it offline"},
                       {"content.key", "signs weights: for the root alone"},
                       {"content.pub", "checks weights: copy it to every node"}},
                      *info);
}

int issue(const Context& context, const CertOptions& options) {
  const auto role = net::role_from(options.role);
  if (!role)
    return context.fail(ExitCode::usage, "cannot issue a certificate", "\"" + options.role + "\" is no role",
                        "root, relay, operator or observer");
  net::CertificateOrder order;
  order.node = options.node;
  order.role = *role;
  order.valid_days = static_cast<int>(options.days);
  if (auto made = net::issue(options.ca, order, options.out); !made)
    return fail(context, "cannot issue a certificate for \"" + options.node + "\"", made.error());
  const fs::path dir = options.out;
  auto info = net::inspect(dir / "node.crt");
  if (!info) return fail(context, "cannot read back the certificate", info.error());
  return report_files(context, dir,
                      {{"node.crt", "certificate of this node"},
                       {"node.key", "its private key: stays on the node"},
                       {"ca.crt", "authority of the mesh"},
                       {"content.pub", "checks weights"}},
                      *info);
}

int inspect(const Context& context, const CertOptions& options) {
  auto info = net::inspect(options.file);
  if (!info) return fail(context, "cannot inspect the certificate", info.error());
  if (context.json())
    context.print(json::serialize(info_json(*info)) + "\n");
  else if (context.format == OutputFormat::name)
    context.print((info->identity ? info->identity->uri() : info->subject) + "\n");
  else
    context.print(info_text(context, *info));
  return to_int(ExitCode::ok);
}

int check(const Context& context, const CertOptions& options) {
  const auto now = Clock::now();
  auto findings = net::check_certificate(options.cert, options.key, options.ca, now);
  if (!findings) return fail(context, "cannot check the certificate", findings.error());
  auto info = net::inspect(options.cert);
  if (!info) return fail(context, "cannot check the certificate", info.error());
  const int code = to_int(findings->empty() ? ExitCode::ok : ExitCode::invalid);
  if (context.json()) {
    json::object out = info_json(*info);
    out["schema"] = "deltarelay.certificate-check/1";
    out["ok"] = findings->empty();
    json::array list;
    for (const auto& finding : *findings) {
      json::object entry;
      entry["code"] = finding.code;
      entry["text"] = finding.text;
      list.push_back(std::move(entry));
    }
    out["findings"] = std::move(list);
    context.print(json::serialize(out) + "\n");
  }
  for (const auto& finding : *findings)
    context.fail(ExitCode::invalid, options.cert, finding.code + ", " + finding.text,
                 "a new one by `relayctl cert issue`");
  if (!findings->empty() || context.json()) return code;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(info->valid_until - now);
  if (left < expires_soon) context.note("warning: " + options.cert + " expires in " + human_age(left));
  if (!context.quiet)
    context.print(fmt::format("{}: good for {} until {} ({} left)\n", options.cert, info->identity->uri(),
                              time_text(info->valid_until, context.utc), human_age(left)));
  return code;
}

}  // namespace

void add_cert_commands(CLI::App& app, Context& context) {
  CLI::App* cert = app.add_subcommand("cert", "Make, show and check the certificates of a mesh");
  cert->require_subcommand(1);
  auto options = std::make_shared<CertOptions>();

  CLI::App* init = cert->add_subcommand("init-ca", "Make the authority and the content key of a new mesh");
  init->add_option("DIR", options->directory, "where the files go; nothing there is overwritten")->required();
  init->add_option("--mesh", options->mesh, "name of the mesh")->required();
  command(*init, context, [&context, options] { return init_ca(context, *options); });

  CLI::App* issue_command = cert->add_subcommand("issue", "Make certificate and key of one node");
  issue_command->add_option("--ca", options->ca, "directory that init-ca made")->required();
  issue_command->add_option("--node", options->node, "name of the node, as in topology.yaml")->required();
  issue_command->add_option("--role", options->role, "root, relay, operator or observer")->capture_default_str();
  issue_command->add_option("--out", options->out, "directory for node.crt and node.key")->required();
  add_count(*issue_command, "--days", options->days, {1, net::valid_days_max}, "validity");
  command(*issue_command, context, [&context, options] { return issue(context, *options); });

  CLI::App* inspect_command = cert->add_subcommand("inspect", "Show what a certificate says");
  inspect_command->add_option("F", options->file, "PEM file")->required();
  command(*inspect_command, context, [&context, options] { return inspect(context, *options); });

  CLI::App* check_command = cert->add_subcommand("check", "Say whether a node can be started with these files");
  check_command->add_option("--cert", options->cert, "PEM: the node's certificate")->required();
  check_command->add_option("--key", options->key, "PEM: its private key")->required();
  check_command->add_option("--ca", options->ca, "PEM: the mesh's authority")->required();
  command(*check_command, context, [&context, options] { return check(context, *options); });
}

}  // namespace deltarelay::relayctl
