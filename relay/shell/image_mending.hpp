// A relay whose shards were cut short or taken away makes the files whole again at the start, as a host without a
// version: block sync brings the content. Without this it would need an operator for what its parent can give it.
//
// Never on a root, whose image is the fleet's only source. State thread.
#pragma once

#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {

/// Keeps the shape of the image that is open. A failure is noted only: it costs a repair that may never be needed.
void remember_shape(const HostStore& store, const Image& image);

/// Makes files whole again that are damaged, if any. Errors: engine_reads (nothing was touched), hard_linked,
/// already_locked, and those of the file system.
[[nodiscard]] StoreResult<void> mend_image(HostStore& store);

/// Whether mend_image() would make a checkpoint of what cannot be read as one now.
[[nodiscard]] bool can_be_mended(const std::filesystem::path& state_dir, const std::filesystem::path& image_dir);

}  // namespace deltarelay::relay
