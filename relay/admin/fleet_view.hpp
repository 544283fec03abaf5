// What an operator sees of the fleet, from what the core knows: records and the refit's summary in, documents out.
//
// Layer: relay/admin; pure functions of their input, no clock and no I/O, so golden tests hold them. Taken on the
// core's strand (fleet_input() copies), built anywhere. Reachability is derived here: a parent marks only the child
// that it lost, so whatever hangs below an unreachable node, as far as anybody knows, is unreachable too, until it
// reports through another parent. A relay knows its subtree only; its documents list the nodes planned below it and
// those that it adopted, not the mesh.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "relay/admin/documents.hpp"
#include "relay/admin/history.hpp"
#include "relay/admin/rate_meter.hpp"
#include "relay/core/node.hpp"
#include "topology/plan.hpp"

namespace deltarelay::relay::admin {

/// What the encoder has done of the refit in flight, or of the last one. All zero when nothing was encoded yet.
struct EncodeProgress {
  std::uint64_t dense_bytes = 0;
  std::uint64_t scanned_bytes = 0;
  std::uint64_t payload_bytes = 0;
  double changed_percent = 0;
};

struct FleetInput {
  // who answers
  std::string mesh;
  std::string node;
  bool is_root = false;
  std::optional<Time> started;
  // what the core knows
  std::map<std::string, NodeRecord> records;
  RefitSummary refit;
  CommitPolicy policy;
  Version image_version{};  ///< of this node's own image
  Epoch epoch{};
  // what the shell knows
  EncodeProgress encode;
  const topology::Plan* plan = nullptr;  ///< never null in use; outlives the input
  const History* history = nullptr;      ///< may be null; outlives the input
  const RateMeter* rates = nullptr;      ///< may be null; outlives the input
  double mean_block_bytes = 0;           ///< of the own image; 0: not open
  Instant now{};                         ///< one moment on both clocks: how instants become times
  Time at{};
};

/// Copies from the core what the views need. On the core's strand. mesh, started, encode, history and rates are left to
/// the caller.
[[nodiscard]] FleetInput fleet_input(const Node& node, const topology::Plan& plan, Instant now, Time at);

[[nodiscard]] StatusDocument status_document(const FleetInput& input);
[[nodiscard]] NodesDocument nodes_document(const FleetInput& input);
[[nodiscard]] RefitDocument refit_document(const FleetInput& input);
/// The history row of the refit in `input.refit`. To be put when the refit is decided, and again while its count of
/// committed nodes grows.
[[nodiscard]] VersionRow version_row(const FleetInput& input);
/// nodes_document() with the row of one node only; empty when neither plan nor records know it.
[[nodiscard]] std::optional<NodesDocument> node_document(const FleetInput& input, const std::string& name);

/// The version that the mesh has decided on, as far as this node knows; 0: none.
[[nodiscard]] Version committed_version(const FleetInput& input);
[[nodiscard]] Health health_of(const FleetInput& input);

}  // namespace deltarelay::relay::admin
