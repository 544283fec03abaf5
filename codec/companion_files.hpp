// The small files beside a checkpoint's shards (config.json, tokenizer files), read whole as FILE records carry them.
//
// Thread-safe. A file that changes while it is read is an error, never a mixture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/payloads.hpp"

namespace deltarelay::codec {

/// Errors: io_error, file_changed, table_too_large (the file does not fit a FILE record).
[[nodiscard]] Checked<FilePayload> read_companion(const std::filesystem::path& directory, const std::string& name);

/// All of a checkpoint's, names sorted.
[[nodiscard]] Checked<std::vector<FilePayload>> read_companions(const Checkpoint& checkpoint);

/// What END says of a file.
[[nodiscard]] CompanionFile describe(const FilePayload& file);

}  // namespace deltarelay::codec
