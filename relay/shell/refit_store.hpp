// A refit on this host's disk: its records applied, made durable, committed, or compared with the base after an abort.
//
// Blocking. apply_record() runs on the apply threads, everything else on the state thread.
#pragma once

#include "relay/core/actions.hpp"
#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {

/// FRAME: by the block rule. FILE: nothing yet, commit writes it. Types unknown to this release: nothing.
[[nodiscard]] FrameApplied apply_record(HostStore& store, const std::shared_ptr<DigestTable>& table,
                                        LogPosition position);

/// REQUIRES that the log was synced after the refit's last record was written. A relay's image itself is left to the
/// kernel: what a power cut takes from it is found by its hash at the next start and put back from the log
/// (image_opening.hpp), or by block sync. A root has nobody to ask and waits for its disk.
[[nodiscard]] ImageSynced sync_image(HostStore& store, Version version);
/// Companion files, digest table, ledger, marker; then the version's table is table().
[[nodiscard]] CommitSaved save_commit(HostStore& store, const SaveCommit& action);
/// Compares every block that the log's frames of `version` touch. REQUIRES that no block of it is being applied any
/// more.
[[nodiscard]] BaseCompared compare_with_base(HostStore& store, Version version);

/// Every record of one refit that the log holds, in order, until `visit` returns false. Errors of the log's files.
[[nodiscard]] StoreResult<void> for_each_record(HostStore& store, Version version,
                                                const std::function<bool(const codec::RecordPtr&)>& visit);

}  // namespace deltarelay::relay
