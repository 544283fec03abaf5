// `status`, `health`, `tree`, `nodes` and `node`: what the fleet is doing now. They ask, filter and draw; nothing is
// changed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/count_option.hpp"
#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/joined.hpp"
#include "tools/relayctl/render_nodes.hpp"
#include "tools/relayctl/render_status.hpp"
#include "tools/relayctl/render_tree.hpp"
#include "tools/relayctl/watch.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::NodeRow;
using relay::admin::NodesDocument;
using relay::admin::StatusDocument;

struct LookOptions {
  bool check = false;
  bool watch = false;
  std::string detail;
  std::string name;
  std::string state;
  TreeView tree;
};

/// One document a line while watching, so that a reader knows where each ends; indented otherwise.
std::string json_view(const std::string& body, bool watch) {
  return watch ? body + "\n" : relay::admin::indented_json(body);
}

View failed_view(ClientError error) {
  View view;
  view.error = std::move(error);
  return view;
}

View status_view(const Context& context, const LookOptions& options) {
  auto answer = Daemon(context).get<StatusDocument>("/v1/status");
  if (answer.error) return failed_view(std::move(*answer.error));
  View view;
  if (context.json()) {
    view.text = json_view(answer.body, options.watch);
  } else if (context.format == OutputFormat::name) {
    view.text = answer.document.mesh + "\n";
  } else {
    view.text = status_text(context, answer.document);
  }
  if (options.check) view.exit_code = to_int(health_exit(answer.document.health.level));
  return view;
}

View health_view(const Context& context, const LookOptions& options) {
  auto answer = Daemon(context).get<StatusDocument>("/v1/status");
  if (answer.error) return failed_view(std::move(*answer.error));
  const auto& health = answer.document.health;
  View view;
  if (context.json()) {
    view.text = json_view(answer.body, false);
  } else if (context.format == OutputFormat::name) {
    view.text = health.level + "\n";
  } else {
    view.text = health_text(context, health, context.wide() || !options.detail.empty());
  }
  view.exit_code = to_int(health_exit(health.level));
  return view;
}

std::string names_text(const std::vector<NodeRow>& rows) {
  std::string text;
  for (const NodeRow& row : rows) text += row.name + "\n";
  return text;
}

ClientError unknown(const std::string& what, const std::string& why, const std::string& try_next) {
  ClientError error;
  error.exit_code = ExitCode::precondition;
  error.what = what;
  error.why = why;
  error.try_next = try_next;
  return error;
}

ClientError unknown_node(const std::string& name) {
  return unknown("no node " + name, "neither the plan nor any report that reached this daemon names it",
                 "relayctl nodes -o name");
}

const NodeRow* find_node(const NodesDocument& document, const std::string& name) {
  const auto found =
      std::find_if(document.nodes.begin(), document.nodes.end(), [&](const NodeRow& row) { return row.name == name; });
  return found == document.nodes.end() ? nullptr : &*found;
}

std::optional<ClientError> unknown_in_tree(const NodesDocument& document, const TreeView& view) {
  if (!view.node.empty() && find_node(document, view.node) == nullptr) return unknown_node(view.node);
  if (view.region.empty()) return std::nullopt;
  std::set<std::string> regions;
  for (const NodeRow& row : document.nodes) regions.insert(row.region);
  if (regions.count(view.region) != 0) return std::nullopt;
  return unknown("no region " + view.region, "the nodes are in " + joined({regions.begin(), regions.end()}, ", "),
                 "one of these");
}

View tree_view(const Context& context, const LookOptions& options) {
  auto answer = Daemon(context).get<NodesDocument>("/v1/tree");
  if (answer.error) return failed_view(std::move(*answer.error));
  if (auto error = unknown_in_tree(answer.document, options.tree)) return failed_view(std::move(*error));
  View view;
  if (!context.json() && context.format != OutputFormat::name) {
    view.text = tree_text(context, answer.document, options.tree);
    return view;
  }
  NodesDocument shown = answer.document;
  shown.nodes.clear();
  for (const TreeRow& item : tree_rows(answer.document, options.tree)) shown.nodes.push_back(*item.row);
  view.text = context.json() ? json_view(relay::admin::to_json(shown), options.watch) : names_text(shown.nodes);
  return view;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

View nodes_view(const Context& context, const LookOptions& options) {
  auto answer = Daemon(context).get<NodesDocument>("/v1/nodes");
  if (answer.error) return failed_view(std::move(*answer.error));
  NodesDocument& document = answer.document;
  if (!options.state.empty()) {
    const auto other = [&](const NodeRow& row) { return lower(row.state) != lower(options.state); };
    document.nodes.erase(std::remove_if(document.nodes.begin(), document.nodes.end(), other), document.nodes.end());
    answer.body = relay::admin::to_json(document);
  }
  View view;
  if (context.json()) {
    view.text = json_view(answer.body, false);
  } else if (context.format == OutputFormat::name) {
    view.text = names_text(document.nodes);
  } else {
    view.text = nodes_text(context, document);
  }
  return view;
}

View node_view(const Context& context, const LookOptions& options) {
  auto answer = Daemon(context).get<NodesDocument>("/v1/nodes");
  if (answer.error) return failed_view(std::move(*answer.error));
  const NodeRow* row = find_node(answer.document, options.name);
  if (row == nullptr) return failed_view(unknown_node(options.name));
  View view;
  if (context.json()) {
    NodesDocument one = answer.document;
    one.nodes.assign(1, *row);
    view.text = json_view(relay::admin::to_json(one), false);
  } else if (context.format == OutputFormat::name) {
    view.text = row->name + "\n";
  } else {
    view.text = node_text(context, answer.document, *row);
  }
  return view;
}

using Look = View (*)(const Context&, const LookOptions&);

void on_command(CLI::App& sub, Context& context, Pace& pace, std::shared_ptr<LookOptions> options, Look look) {
  command(sub, context, [&context, &pace, options = std::move(options), look] {
    return show_views(context, pace, options->watch, [&] { return look(context, *options); });
  });
}

}  // namespace

void add_look_commands(CLI::App& app, Context& context, Pace& pace) {
  auto options = std::make_shared<LookOptions>();

  CLI::App* status = app.add_subcommand("status", "One screen: mesh, health, committed version, refit, problems");
  status->add_flag("--check", options->check, "exit 10 when the health is WARN, 11 when it is ERR");
  status->add_flag("-w,--watch", options->watch, "again every second");
  on_command(*status, context, pace, options, status_view);

  CLI::App* health = app.add_subcommand("health", "Coded checks; exit 0 when all is well, 10 for WARN, 11 for ERR");
  health->add_option("detail", options->detail, "the word `detail`: also what to do about each")
      ->check(one_of({"detail"}));
  on_command(*health, context, pace, options, health_view);

  CLI::App* tree = app.add_subcommand("tree", "Who is attached to whom and how far each node is");
  tree->add_option("NODE", options->tree.node, "only this node and what is below it");
  add_count(*tree, "--depth", options->tree.depth, {0, 1'000'000}, "levels to show below the first");
  tree->add_option("--region", options->tree.region, "only nodes of this region, and the way to them");
  tree->add_flag("--problems", options->tree.problems, "only nodes with a problem, and the way to them");
  tree->add_flag("-w,--watch", options->watch, "again every second");
  on_command(*tree, context, pace, options, tree_view);

  CLI::App* nodes = app.add_subcommand("nodes", "Every node in one table");
  nodes
      ->add_option("--state", options->state,
                   "STARTING, IDLE, SYNCING, RECEIVING, PREPARED, COMMITTING, FAILED or unreachable")
      ->check([](const std::string& text) {
        static const auto check =
            one_of({"starting", "idle", "syncing", "receiving", "prepared", "committing", "failed", "unreachable"});
        return check(lower(text));
      });
  on_command(*nodes, context, pace, options, nodes_view);

  CLI::App* node = app.add_subcommand("node", "The page of one node");
  node->add_option("NAME", options->name, "as the topology names it")->required();
  on_command(*node, context, pace, options, node_view);
}

}  // namespace deltarelay::relayctl
