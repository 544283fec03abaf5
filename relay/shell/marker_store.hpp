// What deltarelay.json says of this host's image, kept true: written before the image changes, after it has a version,
// and at a start that finds it saying something else. State thread.
#pragma once

#include "relay/shell/host_store.hpp"
#include "relay/store/image_marker.hpp"

namespace deltarelay::relay {

/// Says in the image directory that it is being changed. Error replaced when the open files are not the image any more.
[[nodiscard]] StoreResult<void> mark_applying(HostStore& store, Version from, Version to);
/// Says that the image is the ledger's version.
[[nodiscard]] StoreResult<void> mark_committed(HostStore& store, std::vector<std::string> changed_tensors);
/// The same where the version holds whatever becomes of the marker: a failure is noted, and retry_marker() makes it
/// good.
void mark_committed_or_later(HostStore& store, std::vector<std::string> changed_tensors);
/// Once in a while: writes what could not be written before.
void retry_marker(HostStore& store);

/// For a start, and for a refit that was undone: nothing is written when the marker says so already.
[[nodiscard]] StoreResult<void> correct_to_committed(HostStore& store);
/// The image is on its way from the ledger's version to `to`.
[[nodiscard]] StoreResult<void> correct_to_applying(HostStore& store, Version to);
/// The image is of no version. Nothing is written either when there is no marker: then nothing is stated.
[[nodiscard]] StoreResult<void> correct_to_no_version(HostStore& store);

}  // namespace deltarelay::relay
