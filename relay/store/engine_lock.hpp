// The lock by which engines say that they read an image: a shared flock on deltarelay.lock beside the shards.
//
// While one is held nothing in the directory is written, except deltarelay.json when it would state a version that the
// image does not hold. Nothing here waits: who must wait tries again. Thread-safe, no state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

/// The lock against all engines; nullopt while one reads. None gets it before the File is closed.
[[nodiscard]] StoreResult<std::optional<File>> hold_engines(const std::filesystem::path& image_dir);

/// Who reads, as far as the kernel tells: "pid 4711 (python3), pid 4712 (python3)"; empty when it cannot be told.
[[nodiscard]] std::string engines_reading(const std::filesystem::path& image_dir);

}  // namespace deltarelay::relay
