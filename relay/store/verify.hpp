// Compares an image with what its ledger states, for `relayctl verify`.
//
// Read-only and without the image's lock, so it also works beside a running daemon: blocks of a refit in progress may then
// be reported. Memory: a block and two digest tables, whatever the image's size. A file cut short meanwhile is an error.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/digest.hpp"
#include "codec/layout.hpp"
#include "relay/store/store_error.hpp"

namespace deltarelay::relay {

struct VerifyReport {
  codec::Version version{};               ///< as the ledger states; 0: no ledger was given or nothing is committed
  std::optional<codec::Digest> stated;    ///< of the ledger
  std::optional<codec::Digest> computed;  ///< digest of the digest table, when `deep`
  std::uint64_t blocks = 0, bytes = 0;
  std::vector<codec::BlockId> differing;  ///< when `deep` and a ledger was given
  std::shared_ptr<const codec::Layout> layout;  ///< of the image, to name what differs
  std::vector<std::string> findings;      ///< one sentence each; none: the image is what the ledger states

  [[nodiscard]] bool ok() const noexcept { return findings.empty(); }
};

/// Called between blocks while they are hashed; false gives the reading up.
using VerifyWatch = std::function<bool(std::uint64_t checked_bytes, std::uint64_t total_bytes)>;

/// Shallow: headers and tensors agree with the committed LAYOUT record, END with the ledger. `deep`: every block is hashed.
/// Without `state_directory` nothing is compared; `computed` is still of use against another host's. `block_bytes` counts
/// only when the ledger holds no LAYOUT record. Errors are those of reading, and operation_canceled when `watch` gave up;
/// disagreement is in the report.
[[nodiscard]] StoreResult<VerifyReport> verify_image(const std::filesystem::path& directory,
                                                     const std::optional<std::filesystem::path>& state_directory, bool deep,
                                                     std::uint32_t block_bytes, const VerifyWatch& watch = {});

}  // namespace deltarelay::relay
