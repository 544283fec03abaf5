#include "tools/relayctl/plan_commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>

#include "config/topology_file.hpp"
#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/plan_text.hpp"
#include "topology/cost.hpp"
#include "topology/render.hpp"

namespace deltarelay::relayctl {
namespace {

struct PlanOptions {
  std::string file, as;
};

/// Findings are errors, so text goes to stderr; JSON is the answer to whoever asked for it, so it goes to stdout.
int report_findings(const Context& context, const config::Findings& findings) {
  if (context.json()) {
    context.print(boost::json::serialize(findings_json(findings)) + "\n");
  } else {
    std::fputs(findings.text().c_str(), context.err);
  }
  return to_int(ExitCode::invalid);
}

int validate(const Context& context, const PlanOptions& options) {
  const config::LoadedTopology loaded = config::load_topology(options.file);
  if (!loaded.plan) return report_findings(context, loaded.findings);
  const topology::Plan& plan = *loaded.plan;
  if (context.json()) {
    boost::json::object out = findings_json(loaded.findings);
    out["plan_epoch"] = std::to_string(plan.epoch());
    out["digest"] = plan.digest();
    out["hosts"] = plan.nodes().size();
    out["regions"] = loaded.model->regions.size();
    context.print(boost::json::serialize(out) + "\n");
  } else if (!context.quiet) {
    context.print(fmt::format("{}: valid; {} hosts in {} regions, plan {} ({})\n", options.file, plan.nodes().size(),
                              loaded.model->regions.size(), plan.epoch(), plan.digest()));
  }
  return to_int(ExitCode::ok);
}

int show(const Context& context, const PlanOptions& options) {
  const config::LoadedTopology loaded = config::load_topology(options.file);
  if (!loaded.plan) return report_findings(context, loaded.findings);
  const topology::Model& model = *loaded.model;
  const topology::Plan& plan = *loaded.plan;
  const auto glyphs = context.plain_ascii() ? topology::Glyphs::ascii : topology::Glyphs::unicode;
  if (context.json() || options.as == "json") {
    const topology::Prediction prediction = topology::predict(model, plan, model.refit);
    context.print(boost::json::serialize(plan_json(model, plan, model.refit, prediction)) + "\n");
  } else if (context.format == OutputFormat::name) {
    for (const topology::HostIndex index : plan.by_rank()) context.print(plan.node(index).name + "\n");
  } else if (options.as == "dot") {
    context.print(topology::render_dot(model, plan));
  } else if (options.as == "tree") {
    context.print(topology::render_tree(plan, glyphs));
  } else {
    const topology::Prediction prediction = topology::predict(model, plan, model.refit);
    context.print(plan_summary(model, plan, model.refit, prediction) + "\n" + topology::render_tree(plan, glyphs));
  }
  return to_int(ExitCode::ok);
}

}  // namespace

void add_plan_commands(CLI::App& app, Context& context) {
  CLI::App* plan = app.add_subcommand("plan", "Check a topology file and look at the plan made from it");
  plan->require_subcommand(1);
  auto options = std::make_shared<PlanOptions>();

  CLI::App* validate_command = plan->add_subcommand("validate", "Report every mistake in FILE; exit 3 if there is one");
  validate_command->add_option("FILE", options->file, "topology.yaml")->required();
  command(*validate_command, context, [&context, options] { return validate(context, *options); });

  CLI::App* show_command = plan->add_subcommand("show", "Show who feeds whom, and what a refit is predicted to take");
  show_command->add_option("FILE", options->file, "topology.yaml")->required();
  show_command->add_option("--as", options->as, "tree, dot or json; by default a summary and the tree")
      ->check(one_of({"tree", "dot", "json"}));
  command(*show_command, context, [&context, options] { return show(context, *options); });
}

}  // namespace deltarelay::relayctl
