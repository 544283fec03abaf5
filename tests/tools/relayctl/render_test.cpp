// Everything that the fleet commands draw, against approved text; and the sums behind it.
#include <doctest/doctest.h>

#include "tests/tools/relayctl/golden.hpp"
#include "tests/tools/relayctl/sample_documents.hpp"
#include "tools/relayctl/progress_line.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/render_nodes.hpp"
#include "tools/relayctl/render_status.hpp"
#include "tools/relayctl/render_tree.hpp"
#include "tools/relayctl/render_verify.hpp"
#include "tools/relayctl/render_versions.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl::test {
namespace {

Context context_of(OutputFormat format = OutputFormat::text) {
  Context context;
  context.utc = true;
  context.format = format;
  return context;
}

NodesDocument document_of(std::vector<NodeRow> rows) {
  NodesDocument document;
  document.at = noon();
  document.nodes = std::move(rows);
  return document;
}

std::vector<std::string> names(const std::vector<TreeRow>& rows) {
  std::vector<std::string> all;
  for (const TreeRow& item : rows) all.push_back(item.branch + item.row->name);
  return all;
}

VerifyDocument sample_verify() {
  VerifyDocument document;
  document.deep = true;
  document.nodes = {{"trn-00", "ok", Version{1842}, 140'000'000'000, 0, 61.5, ""},
                    {"hel-01", "damaged", Version{1842}, 140'000'000'000, 3, 64, "model.layers.3.mlp.up block 17"},
                    {"hel-05", "unreachable", Version{}, 0, 0, 0, "no link"}};
  return document;
}

}  // namespace

TEST_SUITE("tools/relayctl/render") {
  TEST_CASE("status: a refit in flight with problems") {
    check_golden("status_refit", status_text(context_of(), sample_status()));
  }

  TEST_CASE("status: wide output says what to do about each problem") {
    check_golden("status_refit_wide", status_text(context_of(OutputFormat::wide), sample_status()));
  }

  TEST_CASE("status: a healthy fleet at rest takes four lines") {
    check_golden("status_calm", status_text(context_of(), calm_status()));
  }

  TEST_CASE("status: a relay that has nothing yet says who was asked") {
    StatusDocument status = calm_status();
    status.node = "hel-01";
    status.role = "relay";
    status.committed = {Version{}, std::nullopt, 0, 3, ""};
    check_golden("status_relay", status_text(context_of(), status));
  }

  TEST_CASE("status: while the root still reads, sizes are so far and nothing looks complete") {
    StatusDocument status = sample_status();
    status.in_flight->scanned_bytes = status.in_flight->dense_bytes / 4;
    for (auto& region : status.in_flight->regions) region.received_percent = region.applied_percent = 100;
    CHECK(applied_percent(*status.in_flight) == doctest::Approx(25));
    check_golden("status_encoding", status_text(context_of(), status));
  }

  TEST_CASE("status: colours are only there when asked for, and do not move the columns") {
    Context context = context_of();
    context.surroundings.stdout_terminal = true;
    const std::string painted = status_text(context, sample_status());
    CHECK(painted.find("\x1b[33mWARN\x1b[0m") != std::string::npos);
    CHECK(display_width(painted) == display_width(status_text(context_of(), sample_status())));
    context.no_color = true;
    CHECK(status_text(context, sample_status()) == status_text(context_of(), sample_status()));
  }

  TEST_CASE("health: the checks, and what to do about them") {
    CHECK(health_text(context_of(), calm_status().health, true) == "OK\n");
    check_golden("health", health_text(context_of(), sample_status().health, false));
    check_golden("health_detail", health_text(context_of(), sample_status().health, true));
  }

  TEST_CASE("health levels give the exit codes of the contract, unknown ones the worst") {
    CHECK(health_exit("OK") == ExitCode::ok);
    CHECK(health_exit("WARN") == ExitCode::health_warn);
    CHECK(health_exit("ERR") == ExitCode::health_err);
    CHECK(health_exit("MELTDOWN") == ExitCode::health_err);
  }

  TEST_CASE("tree: actual parents, adopted and lost nodes") {
    check_golden("tree", tree_text(context_of(), sample_nodes(), {}));
    Context ascii = context_of();
    ascii.ascii = true;
    const std::string plain = tree_text(ascii, sample_nodes(), {});
    check_golden("tree_ascii", plain);
    CHECK(std::all_of(plain.begin(), plain.end(), [](char c) { return static_cast<unsigned char>(c) < 128; }));
  }

  TEST_CASE("tree: a view keeps the way to what it shows") {
    const NodesDocument nodes = sample_nodes();
    CHECK(names(tree_rows(nodes, {.node = {}, .depth = {}, .region = "eu-north", .problems = false})) ==
          std::vector<std::string>{"trn-00", "lhel-01", " thel-02", " thel-05", " lhel-09"});
    CHECK(names(tree_rows(nodes, {.node = {}, .depth = {}, .region = "", .problems = true})) ==
          std::vector<std::string>{"trn-00", "thel-01", "|thel-05", "|lhel-09", "luse-01", " luse-02"});
    CHECK(names(tree_rows(nodes, {.node = "hel-01", .depth = {}, .region = "", .problems = false})) ==
          std::vector<std::string>{"hel-01", "thel-02", "thel-05", "lhel-09"});
  }

  TEST_CASE("tree: what the depth hides is counted") {
    const NodesDocument nodes = sample_nodes();
    const auto rows = tree_rows(nodes, {.node = {}, .depth = 1, .region = "", .problems = false});
    REQUIRE(names(rows) == std::vector<std::string>{"trn-00", "thel-01", "luse-01"});
    CHECK(rows[1].folded == 3);
    CHECK(rows[2].folded == 1);
  }

  TEST_CASE("tree: a ring of reports that have overtaken each other is drawn once, and ends") {
    const NodesDocument ring = document_of(
        {sample_node("root", "r", "", "IDLE"), sample_node("a", "r", "b", "IDLE"), sample_node("b", "r", "a", "IDLE")});
    CHECK(names(tree_rows(ring, {})) == std::vector<std::string>{"root", "a", "lb"});
  }

  TEST_CASE("tree: no node with a problem is said, not shown as nothing") {
    const NodesDocument fine = document_of({sample_node("root", "r", "", "IDLE")});
    CHECK(tree_text(context_of(), fine, {.node = {}, .depth = {}, .region = "", .problems = true}) ==
          "no node has a problem\n");
  }

  TEST_CASE("a node that does not know the end yet is never complete") {
    NodeRow row = receiving(sample_node("a", "r", "root", "RECEIVING"), 50, 50, 0);
    row.total_frames = 0;
    CHECK(node_percent(row, 50).value() == doctest::Approx(99));
    CHECK(node_percent(row, 100).value() == doctest::Approx(50));
    CHECK(node_percent(row, 0).value() == doctest::Approx(0));
    row.receiving_version = Version{};
    CHECK_FALSE(node_percent(row, 100).has_value());
  }

  TEST_CASE("nodes: the table, narrow and wide") {
    check_golden("nodes", nodes_text(context_of(), sample_nodes()));
    check_golden("nodes_wide", nodes_text(context_of(OutputFormat::wide), sample_nodes()));
    CHECK(nodes_text(context_of(), document_of({})) == "no such nodes\n");
  }

  TEST_CASE("node: the page of a relay, of a node that syncs and of one that is lost") {
    const NodesDocument nodes = sample_nodes();
    check_golden("node_relay", node_text(context_of(), nodes, nodes.nodes[1]));
    check_golden("node_syncing", node_text(context_of(), nodes, nodes.nodes[5]));
    check_golden("node_lost", node_text(context_of(), nodes, nodes.nodes[3]));
  }

  TEST_CASE("versions: the table, narrow and wide") {
    check_golden("versions", versions_text(context_of(), sample_versions()));
    check_golden("versions_wide", versions_text(context_of(OutputFormat::wide), sample_versions()));
    CHECK(versions_text(context_of(), {}) == "no version yet\n");
  }

  TEST_CASE("version: one page, with many nodes left out") {
    VersionDocument document{noon(), sample_version()};
    check_golden("version", version_page(context_of(), document));
    document.version.left_out.assign(20, "bom-07");
    CHECK(version_page(context_of(), document).find("bom-07 and 8 more\n") != std::string::npos);
  }

  TEST_CASE("a refit's end, and a dry run") {
    check_golden("outcome", outcome_text(context_of(), row_of(closed_refit("committed", ""))));
    PublishDocument dry;
    dry.version = Version{1844};
    dry.base = Version{1843};
    dry.dry_run = true;
    dry.dense_bytes = 140'000'000'000;
    dry.payload_bytes = 1'652'000'000;
    dry.changed_percent = 2.41;
    dry.predicted_seconds = 23.4;
    check_golden("dry_run", dry_run_text(dry));
  }

  TEST_CASE("phases overlap: the time that a refit took is not their sum") {
    CHECK(total_seconds({9, 22, 14, 0.5}) == doctest::Approx(23.5));
    CHECK(total_seconds({30, 22, 0, 0.5}) == doctest::Approx(30.5));
  }

  TEST_CASE("progress: one line that fits a narrow terminal") {
    RefitDocument document = sample_refit_document();
    document.nodes_prepared = 0;
    CHECK(progress_text(context_of(), document) ==
          "v1843  DISTRIBUTING  ████████░░░░░░   63 %  failed 1  00:14 (00:08 left)");
    document.refit->phase = "PREPARING";
    document.nodes_prepared = 183;
    for (auto& region : document.refit->regions) region.applied_percent = 100;
    CHECK(progress_text(context_of(), document) ==
          "v1843  PREPARING     ██████████████  100 %  prepared 183/192  failed 1  00:14");
    CHECK(progress_text(context_of(), closed_refit("committed", "")) ==
          "v1843  CLOSED        ████████░░░░░░   63 %  committed 192/192  failed 1  00:14");
    RefitDocument none;
    CHECK(progress_text(context_of(), none).empty());
  }

  TEST_CASE("verify: rows that have no verdict yet, and the damaged blocks by name") {
    VerifyDocument document = sample_verify();
    document.nodes[1].damaged = {{"model.layers.3.mlp.up", 17}, {"model.norm", 0}};
    document.nodes.push_back({"hel-06", "busy", Version{}, 0, 0, 0, "RECEIVING v1843", "DONE", 0, {}});
    document.nodes.push_back({"hel-07", "", Version{1842}, 35, 0, 0, "", "READING", 140, {}});
    document.nodes.push_back({"hel-08", "", Version{}, 0, 0, 0, "SYNCING", "WAITING", 0, {}});
    check_golden("verify_wide", verify_text(context_of(OutputFormat::wide), document));
    CHECK(verify_progress_text(document) == "4 of 6 nodes done, 25 % read, last hel-08 waiting (SYNCING)");
  }

  TEST_CASE("verify: damage before loss, loss before busy, and only proof is 0") {
    const auto of = [](const std::vector<const char*>& results) {
      VerifyDocument document;
      for (const char* result : results) document.nodes.push_back({"n", result, Version{1}, 0, 0, 0, "", "DONE", 0, {}});
      return verify_exit(document);
    };
    CHECK(of({"ok", "ok"}) == ExitCode::ok);
    CHECK(of({"ok", "damaged", "unreachable", "busy"}) == ExitCode::failed);
    CHECK(of({"ok", "failed", ""}) == ExitCode::failed);
    CHECK(of({"ok", "busy", "unreachable"}) == ExitCode::unreachable);
    CHECK(of({"ok", "busy"}) == ExitCode::timed_out);
    CHECK(of({"ok", ""}) == ExitCode::timed_out);
    CHECK(of({"ok", "a word of a newer daemon"}) == ExitCode::timed_out);
  }

  TEST_CASE("verify: every node, and what the worst of them means for the exit code") {
    VerifyDocument document = sample_verify();
    check_golden("verify", verify_text(context_of(), document));
    CHECK(verify_exit(document) == ExitCode::failed);
    document.nodes.erase(document.nodes.begin() + 1);
    CHECK(verify_exit(document) == ExitCode::unreachable);
    document.nodes.pop_back();
    CHECK(verify_exit(document) == ExitCode::ok);
    document.nodes.clear();
    CHECK(verify_exit(document) == ExitCode::unreachable);
  }

  TEST_CASE("clipping cuts between code points") {
    CHECK(clipped("██░░", 3) == "██░");
    CHECK(clipped("abc", 3) == "abc");
    CHECK(clipped("abc", 0).empty());
    CHECK(clipped("a\x1b[2J", 9) == "a?[2J");
  }
}

}  // namespace deltarelay::relayctl::test
