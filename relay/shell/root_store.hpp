// What only a root makes durable: its first version, the manifest of a refit, and the decision.
//
// State thread; blocking. The manifest is on disk before the first frame leaves and the decision before any COMMIT or
// ABORT.
#pragma once

#include "relay/core/actions.hpp"
#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {

/// A root without a ledger: seals what its image holds as the first version (LAYOUT and END) and commits it locally.
[[nodiscard]] StoreResult<void> seal_first_version(HostStore& store, const OpenImage& image,
                                                   std::vector<codec::Digest> digests);

[[nodiscard]] ManifestSaved save_manifest(HostStore& store, const SaveManifest& action);
/// REQUIRES that the log was synced after END was written.
[[nodiscard]] DecisionSaved save_decision(HostStore& store, const SaveDecision& action);

}  // namespace deltarelay::relay
