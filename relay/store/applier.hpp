// Applies frames to an image by the block rule: what decodes, over the block's content or over nothing, to the target's
// digest goes to the slot and only then to the image; what is at the target is done; anything else is left alone and
// reported for repair.
//
// One ApplyWorker per thread, all on one Image and one DigestTable. The slot is a file: a copy that a kill
// interrupted is finished by recover_slot() at the next start, before the image is hashed.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/frame.hpp"
#include "codec/record.hpp"
#include "relay/store/digest_table.hpp"
#include "relay/store/image.hpp"

namespace deltarelay::relay {

struct ApplyOutcome {
  std::uint64_t applied = 0, already = 0;
  std::vector<std::uint64_t> needs_repair;  ///< ordinals of blocks at neither base nor target, or that did not decode
  std::optional<StoreError> error;          ///< the first one; blocks behind it were not tried
};

class ApplyWorker {
 public:
  /// Opens or makes the slot file. REQUIRES recover_slot() of it before, if it may be left from another process.
  [[nodiscard]] static StoreResult<std::unique_ptr<ApplyWorker>> open(const std::filesystem::path& slot,
                                                                      const Image& image);
  ApplyWorker(const ApplyWorker&) = delete;
  ApplyWorker& operator=(const ApplyWorker&) = delete;

  /// A FRAME record, already verified. Sets the targets of its blocks in `table`.
  [[nodiscard]] ApplyOutcome apply(const codec::Record& frame, DigestTable& table);
  /// A block sync payload: only blocks whose target is `accepted[ordinal]` are written; others need repair.
  [[nodiscard]] ApplyOutcome apply_sync(codec::Bytes payload, std::span<const codec::Digest> accepted);

 private:
  ApplyWorker(const Image& image, File slot) : image_(image), slot_(std::move(slot)) {}
  void apply_block(const codec::FrameEntry& entry, codec::Bytes tables, ApplyOutcome& outcome);

  const Image& image_;
  File slot_;
  std::vector<std::byte> current_, next_;
  codec::BlockDecoder decoder_;
};

/// Finishes the copy that a slot file holds, if it holds one whole, of this image's layout and of this boot of the
/// machine (after a power cut the file may be older than the image, which is then hashed). True when it did: then no
/// engine reads until image.release_engines(). Error engine_reads when one does now.
[[nodiscard]] StoreResult<bool> recover_slot(const std::filesystem::path& slot, Image& image);

/// Digests of all blocks in order, by up to `threads` threads. ECANCELED when `cancel` became true.
[[nodiscard]] StoreResult<std::vector<codec::Digest>> hash_image(const Image& image, unsigned threads,
                                                                 const std::atomic<bool>& cancel);

}  // namespace deltarelay::relay
