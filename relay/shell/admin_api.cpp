#include "relay/shell/admin_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>

#include "relay/admin/verify_view.hpp"
#include "topology/cost.hpp"

namespace deltarelay::relay {
namespace {

using admin::AdminReply;
using admin::AdminRequest;
using admin::ErrorDocument;

constexpr auto slow_answer_within = std::chrono::minutes(30);  // reads whole checkpoints

/// What a refused request means to relayctl (cli.md, exit codes).
struct Refusal {
  std::string_view code;
  unsigned http_status;
  int exit_code;
  std::string_view try_next;
};
constexpr Refusal refusals[] = {
    {"EXPORT_INVALID", 422, 3, "relayctl checkpoint info DIR on the root's host"},
    {"CONFLICT", 409, 6, "relayctl status, to see what is in flight and which versions were used"},
    {"NOT_READY", 409, 6, "relayctl wait healthy, then again"},
    {"NO_SUCH_REFIT", 404, 6, "relayctl status, to see what is in flight"},
    {"NOT_ROOT", 409, 6, "the same on the root's host; relayctl status names it"},
    {"USAGE", 400, 2, "relayctl help"},
    {"FENCED", 409, 8, "relayctl status on the root of the higher epoch"},
    {image_replaced, 409, 6, "put the checkpoint of the committed version back, then restart relayd"},
    {"VERIFY_RUNS", 409, 6, "relayctl verify again when that one has ended"},
    {"VERIFY_REPLACED", 409, 6, "relayctl verify again when that one has ended"},
    {"DISK_FULL", 507, 1, "free space in the state directory, then again"},
};

void refuse(const AdminReply& reply, const std::string& what, const std::string& code, const std::string& text) {
  Refusal how{code, 500, 1, "relayd's log"};
  for (const Refusal& known : refusals)
    if (known.code == code) how = known;
  admin::refuse(reply, how.http_status, ErrorDocument{what, text, std::string(how.try_next), how.exit_code});
}

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const char* begin = text.data() + (text.starts_with('v') ? 1 : 0);
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || begin == end) return std::nullopt;
  return value;
}

/// A handler that runs on the core strand.
admin::AdminHandler on_core(Shell& shell, std::function<void(const AdminRequest&, const AdminReply&)> handler) {
  return [&shell, handler = std::move(handler)](AdminRequest request, AdminReply reply) {
    boost::asio::post(shell.executor(),
                      [handler, request = std::move(request), reply = std::move(reply)] { handler(request, reply); });
  };
}

bool is_root(const Shell& shell) {
  return shell.parts().store->options().is_root;
}

void add_views(admin::AdminServer& server, Shell& shell) {
  server.route("GET", "/v1/status", on_core(shell, [&shell](const AdminRequest&, const AdminReply& reply) {
                 admin::answer(reply, admin::status_document(shell.fleet()));
               }));
  for (const char* path : {"/v1/nodes", "/v1/tree"})
    server.route("GET", path, on_core(shell, [&shell](const AdminRequest&, const AdminReply& reply) {
                   admin::answer(reply, admin::nodes_document(shell.fleet()));
                 }));
  server.route(
      "GET", "/v1/nodes/{name}", on_core(shell, [&shell](const AdminRequest& request, const AdminReply& reply) {
        const std::string& name = request.captures.at("name");
        const auto document = admin::node_document(shell.fleet(), name);
        if (!document)
          return admin::refuse(reply, 404,
                               ErrorDocument{"cannot show node " + name, "neither the plan nor a report names it",
                                             "relayctl nodes, for the names", 6});
        admin::answer(reply, *document);
      }));
  server.route("GET", "/v1/refit", on_core(shell, [&shell](const AdminRequest&, const AdminReply& reply) {
                 admin::answer(reply, admin::refit_document(shell.fleet()));
               }));
  server.route("GET", "/v1/versions", on_core(shell, [&shell](const AdminRequest&, const AdminReply& reply) {
                 admin::VersionsDocument document;
                 document.at = shell.fleet().at;
                 document.versions = shell.history().rows();
                 admin::answer(reply, document);
               }));
  server.route(
      "GET", "/v1/versions/{version}", on_core(shell, [&shell](const AdminRequest& request, const AdminReply& reply) {
        const std::string& text = request.captures.at("version");
        const auto version = number(text);
        const admin::VersionRow* row = version ? shell.history().find(Version{*version}) : nullptr;
        if (row == nullptr)
          return admin::refuse(reply, 404,
                               ErrorDocument{"cannot show version " + text, "this node's history does not have it",
                                             "relayctl versions, on the root's host", 6});
        admin::VersionDocument document;
        document.at = shell.fleet().at;
        document.version = *row;
        admin::answer(reply, document);
      }));
}

/// What publish would choose: above every number that this root has given or heard of.
Version next_version(const Shell& shell) {
  const admin::FleetInput fleet = shell.fleet();
  Version highest = std::max(fleet.image_version, fleet.refit.version);
  for (const admin::VersionRow& row : shell.history().rows()) highest = std::max(highest, row.version);
  for (const auto& [name, record] : fleet.records) highest = std::max({highest, record.committed, record.receiving});
  return codec::next(highest);
}

void dry_run(Shell& shell, const admin::PublishRequest& request, const AdminReply& reply) {
  const auto answer = [&shell, reply, dir = request.dir,
                       version = request.version](codec::Checked<RefitEstimate> estimate) {
    if (!estimate) return refuse(reply, "cannot estimate a refit to " + dir, "EXPORT_INVALID", estimate.error().text());
    admin::PublishDocument document;
    document.dry_run = true;
    const auto image = shell.parts().store->image();
    document.dense_bytes = image->layout().total_bytes();
    document.payload_bytes = estimate->payload_bytes;
    const double change = estimate->stats.elements == 0 ? 0
                                                        : static_cast<double>(estimate->stats.changed_elements) /
                                                              static_cast<double>(estimate->stats.elements);
    document.changed_percent = 100 * change;
    topology::RefitSize size;
    size.checkpoint_bytes = document.dense_bytes;
    size.change = change;
    document.predicted_seconds = topology::predict(shell.parts().model, shell.parts().plan, size).total_seconds;
    boost::asio::post(shell.executor(), [&shell, reply, version, document]() mutable {
      document.base = shell.node().image().version;
      document.version = version ? *version : next_version(shell);
      admin::answer(reply, document);
    });
  };
  shell.estimate(request.dir, answer);
}

void publish(Shell& shell, const AdminRequest& http, const AdminReply& reply) {
  admin::PublishRequest request;
  if (auto wrong = admin::read_body(http, request)) return admin::refuse(reply, 400, *wrong);
  const std::string what = "cannot publish " + request.dir;
  if (!is_root(shell)) return refuse(reply, what, "NOT_ROOT", "this node is not the root");
  if (request.dir.empty() || request.dir.front() != '/')
    return refuse(reply, what, "USAGE", "the directory must be an absolute path");
  if (request.dry_run) return dry_run(shell, request, reply);
  shell.publish(request.dir, request.version, request.policy, [&shell, what, reply](const RequestResult& result) {
    if (!result.code.empty()) return refuse(reply, what, result.code, result.text);
    admin::PublishDocument document;
    document.version = result.version;
    document.base = shell.node().refit().base;
    admin::answer(reply, document);
  });
}

void abort(Shell& shell, const AdminRequest& http, const AdminReply& reply) {
  admin::AbortRequest request;
  if (auto wrong = admin::read_body(http, request)) return admin::refuse(reply, 400, *wrong);
  const std::string what = fmt::format("cannot abort v{}", codec::raw(request.version));
  if (!is_root(shell)) return refuse(reply, what, "NOT_ROOT", "this node is not the root");
  const std::string who = http.peer_uid ? fmt::format("by the operator with uid {}", *http.peer_uid) : "by an operator";
  shell.abort(request.version, who, [what, reply](const RequestResult& result) {
    if (!result.code.empty()) return refuse(reply, what, result.code, result.text);
    admin::answer(reply, admin::AbortDocument{result.version});
  });
}

admin::VerifyDocument verify_document(const Shell& shell) {
  return admin::verify_document(shell.fleet(), shell.node().verify(), shell.node().verify_over());
}

void verify(Shell& shell, const AdminRequest& http, const AdminReply& reply) {
  admin::VerifyRequest request;
  if (auto wrong = admin::read_body(http, request)) return admin::refuse(reply, 400, *wrong);
  const auto begun = [&shell, reply, wait = request.wait] {
    if (!wait) admin::answer(reply, verify_document(shell));
  };
  shell.verify(request.deep, begun, [&shell, reply, wait = request.wait](const RequestResult& result) {
    if (!result.code.empty()) return refuse(reply, "cannot verify", result.code, result.text);
    if (wait) admin::answer(reply, verify_document(shell));
  });
}

void last_verify(const Shell& shell, const AdminReply& reply) {
  if (!shell.node().verify().begun())
    return admin::refuse(reply, 404,
                         ErrorDocument{"cannot show a verification", "none was begun since relayd started here",
                                       "relayctl verify", 6});
  admin::answer(reply, verify_document(shell));
}

}  // namespace

void add_admin_routes(admin::AdminServer& server, Shell& shell) {
  add_views(server, shell);
  server.route("POST", "/v1/publish",
               on_core(shell, [&shell](const AdminRequest& request,
                                       const AdminReply& reply) { publish(shell, request, reply); }),
               slow_answer_within);
  server.route("POST", "/v1/abort", on_core(shell, [&shell](const AdminRequest& request, const AdminReply& reply) {
                 abort(shell, request, reply);
               }));
  server.route(
      "POST", "/v1/verify",
      on_core(shell, [&shell](const AdminRequest& request, const AdminReply& reply) { verify(shell, request, reply); }),
      slow_answer_within);
  server.route("GET", "/v1/verify", on_core(shell, [&shell](const AdminRequest&, const AdminReply& reply) {
                 last_verify(shell, reply);
               }));
}

}  // namespace deltarelay::relay
