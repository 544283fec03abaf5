// Opening a host's image and proving what it is: every block is hashed and compared with the ledger at each start, so
// that a host never says that it holds a version because it held it once.
//
// Blocks that a power cut threw back to an older version are decoded again from the log where it holds their frames.
// After that, a block that differs from the committed version is explained when a refit in the log, not aborted and
// made from that version, sets it to what is there: a process that died half-way goes on where it stopped. Any other
// difference makes a relay a host without a version, which block sync brings back by content, and stops a root, the
// fleet's only source. Cost: one read of the image, about a minute for each TB at 16 GB/s.
#pragma once

#include <atomic>

#include "relay/core/events.hpp"
#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {

/// State thread. Opens, finishes interrupted copies, hashes; a root without a ledger seals its image as the first
/// version, a relay makes shards again that were cut short or taken away (image_mending.hpp). Sets image() and table().
/// A relay whose directory holds no checkpoint is ImageOpened with version 0. Returns ImageOpened or ImageFailed.
[[nodiscard]] Event open_image(HostStore& store, const std::atomic<bool>& cancel);

/// Image and workers alone, without proof: for a directory that block sync has just made.
[[nodiscard]] StoreResult<std::shared_ptr<OpenImage>> open_directory(HostStore& store);

}  // namespace deltarelay::relay
