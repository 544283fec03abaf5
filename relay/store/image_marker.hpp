// deltarelay.json beside the shards: the word by which engines know what the image is. Blocking, no state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codec/digest.hpp"
#include "codec/types.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

struct ImageMarker {
  codec::Version version{};  ///< 0: of no version
  bool applying = false;
  codec::Version target{};  ///< while applying
  codec::Digest digest;
  std::vector<std::string> changed_tensors;
  friend bool operator==(const ImageMarker&, const ImageMarker&) = default;
};

/// Durable on success; readable by whoever could read it before, or by all.
[[nodiscard]] StoreResult<void> write_marker(const std::filesystem::path& image_dir, const ImageMarker& marker);

enum class MarkerFound { none, same, other };
/// Whether there is a marker, and whether it states what `marker` does. Which tensors changed is not compared: that is
/// known to the process that committed, and not to one that starts.
[[nodiscard]] MarkerFound find_marker(const std::filesystem::path& image_dir, const ImageMarker& marker);

}  // namespace deltarelay::relay
