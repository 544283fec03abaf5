// What deltarelay.json in a checkpoint directory states, for messages and defaults; never a proof of content.
#pragma once

#include <filesystem>
#include <optional>

#include "codec/types.hpp"

namespace deltarelay::relayctl {

struct StatedVersion {
  codec::Version version{};
  bool applying = false;
  codec::Version target{};  ///< while applying
};

/// nullopt when there is no such file or it is not one of ours.
[[nodiscard]] std::optional<StatedVersion> stated_version(const std::filesystem::path& directory);

}  // namespace deltarelay::relayctl
