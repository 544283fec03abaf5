// Compares an image with what its ledger states: for `relayctl verify`. Read-only, and beside a running daemon: it takes no
// lock, so blocks of a refit in progress may be reported; the marker tells whether one is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "relay/store/image.hpp"

namespace deltarelay::relay {

struct VerifyReport {
  bool ok = false;
  Version version{};                  ///< stated by the ledger, or by the marker when there is no ledger
  Digest image;                       ///< computed when `deep`, else stated
  std::uint64_t blocks = 0, bytes = 0;
  std::vector<BlockId> differing;     ///< only when deep and a ledger is given
  std::vector<std::string> findings;  ///< sentences; empty when ok
};

/// Shallow: files, headers, layout, marker and ledger agree. `deep`: every block is hashed.
/// Errors are of reading only; disagreement is in the report.
[[nodiscard]] StoreResult<VerifyReport> verify_image(const std::filesystem::path& directory,
                                                     const std::optional<std::filesystem::path>& state_directory, bool deep,
                                                     std::uint32_t block_bytes = codec::block_bytes_default);

}  // namespace deltarelay::relay
