// The shape of an image: everything of its files but the tensors' bytes, kept beside the ledger, so that a host whose
// shards were cut short or taken away can make the files again and have their content brought by block sync.
//
// A host's own shape and not the root's: a host keeps its own file names and cuts. Blocking; no shared state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/payloads.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

/// Reads the shards' headers and the index. Errors: table_too_large, file_changed, and those of the file system.
[[nodiscard]] codec::Checked<codec::LayoutPayload> describe_files(const codec::Checkpoint& checkpoint);

/// Durable on success; the file is left alone when it says the same already.
[[nodiscard]] StoreResult<void> save_shape(FileOps& ops, const std::filesystem::path& file,
                                           const codec::LayoutPayload& shape);
/// nullopt when there is none. Errors: corrupt, and those of the file system.
[[nodiscard]] StoreResult<std::optional<codec::LayoutPayload>> load_shape(FileOps& ops,
                                                                          const std::filesystem::path& file);

/// The files of `shape` that are gone from `directory` or cut short; names sorted. None when the directory holds
/// anything that speaks for another checkpoint (another index, another header, a shard that the shape does not know, a
/// link), or nothing at all: then it is not for us to put files there.
[[nodiscard]] std::vector<std::string> damaged_files(const std::filesystem::path& directory,
                                                     const codec::LayoutPayload& shape);

}  // namespace deltarelay::relay
