// What is drawn while a refit waits for somebody, is taken back, or hosts are filled, against approved text.
#include <doctest/doctest.h>

#include "tests/tools/relayctl/golden.hpp"
#include "tests/tools/relayctl/sample_documents.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/render_nodes.hpp"
#include "tools/relayctl/render_status.hpp"
#include "tools/relayctl/render_tree.hpp"

namespace deltarelay::relayctl::test {
namespace {

Context context_of() {
  Context context;
  context.utc = true;
  return context;
}

NodeRow undoing(NodeRow row, std::uint64_t done) {
  row.undoing_version = Version{1843};
  row.sync_blocks_done = done;
  row.sync_blocks_total = 100;
  row.rate_bytes_per_second = 52e6;
  return row;
}

/// v1843 was aborted: hel-01 and hel-02 put v1842 back, hel-05 is away.
NodesDocument aborted_nodes() {
  NodesDocument nodes = sample_nodes();
  nodes.in_flight_version = Version{};
  nodes.nodes.resize(4);
  nodes.nodes[0] = sample_node("trn-00", "us-east", "", "IDLE");
  nodes.nodes[1] = undoing(sample_node("hel-01", "eu-north", "trn-00", "SYNCING"), 75);
  nodes.nodes[2] = undoing(sample_node("hel-02", "eu-north", "hel-01", "SYNCING"), 10);
  return nodes;
}

}  // namespace

TEST_SUITE("tools/relayctl/render_trouble") {
  TEST_CASE("status: a refit that is prepared but for a few says whom it waits for and until when") {
    StatusDocument status = sample_status();
    status.in_flight->phase = "PREPARING";
    status.in_flight->awaited = {7, {{"bom-07", "DISK_FULL"}, {"hel-05", "unreachable"}, {"hel-41", "RECEIVING"}}, 600};
    check_golden("status_awaited", status_text(context_of(), status));
    CHECK(awaited_text(*status.in_flight) ==
          "waits for bom-07 (DISK_FULL), hel-05 (unreachable), hel-41 (RECEIVING) and 4 more");
    CHECK(awaited_text(*sample_status().in_flight).empty());
  }

  TEST_CASE("status: hosts that are filled, and hosts that take an aborted refit back") {
    StatusDocument status = calm_status();
    status.syncing = {12, 0, 41.7, {"bom-02", 3}};
    check_golden("status_syncing", status_text(context_of(), status));
    const auto says = [&](Syncing syncing, const char* words) {
      status.syncing = std::move(syncing);
      return status_text(context_of(), status).find(words) != std::string::npos;
    };
    CHECK(says({1, 1, 41.7, {"bom-02", 41.7}}, "1 node  42 %"));
    CHECK(says({1, 1, 41.7, {"bom-02", 41.7}}, "  takes an aborted refit back"));
    CHECK(says({6, 6, 41.7, {"bom-02", 3}}, "  take an aborted refit back"));
    CHECK(says({6, 2, 41.7, {"bom-02", 3}}, "  2 take an aborted refit back"));
  }

  TEST_CASE("status: a relay does not give figures that only the root knows") {
    StatusDocument status = sample_status();
    status.node = "hel-01";
    status.role = "relay";
    status.in_flight->dense_bytes = status.in_flight->scanned_bytes = 0;
    status.in_flight->changed_percent = status.in_flight->elapsed_seconds = 0;
    check_golden("status_relay_refit", status_text(context_of(), status));
  }

  TEST_CASE("tree, nodes, node: what is put back is not shown as being received") {
    const NodesDocument nodes = aborted_nodes();
    check_golden("tree_undoing", tree_text(context_of(), nodes, {}));
    check_golden("nodes_undoing", nodes_text(context_of(), nodes));
    check_golden("node_undoing", node_text(context_of(), nodes, nodes.nodes[1]));
  }
}

}  // namespace deltarelay::relayctl::test
