// Applies frames to the image by the block rule: content equals the target: done; equals the base (or none is needed):
// decode into the slot, compare, copy; else the block needs repair. So every call may be repeated, reordered or cut off.
//
// One ApplyWorker per thread; they share Image and DigestTable. The block is copied out of the mapping before it is hashed
// and decoded: what was checked is then what is decoded, and a SIGBUS cannot strike inside the decoder.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/frame.hpp"
#include "codec/record.hpp"
#include "relay/store/digest_table.hpp"
#include "relay/store/image.hpp"
#include "relay/store/slot.hpp"

namespace deltarelay::relay {

struct ApplyOutcome {
  std::vector<std::uint64_t> applied;       ///< ordinals written now
  std::vector<std::uint64_t> already;       ///< were at their target
  std::vector<std::uint64_t> needs_repair;  ///< neither base nor target, or decoded to something else
  std::uint64_t bytes = 0;                  ///< dense bytes written
  StoreError error;                         ///< error.code is 0 when all went well; the lists hold what was done before it
  [[nodiscard]] bool failed() const noexcept { return error.code.failed(); }
};

class ApplyWorker {
 public:
  /// `image` must outlive the worker.
  ApplyWorker(const Image& image, Slot slot);

  /// A FRAME record, verified by the caller. Sets the targets of its blocks in `table`, also where repair is needed.
  [[nodiscard]] ApplyOutcome apply(const codec::Record& frame, DigestTable& table);
  /// A frame's payload, as block sync carries it.
  [[nodiscard]] ApplyOutcome apply_payload(codec::Bytes payload, DigestTable& table);
  /// Block sync and repair: whatever the block holds, make it `expected`. Entries that need a base are refused
  /// (needs_repair stays to be asked for again). True when the block now is at `expected`.
  [[nodiscard]] StoreResult<bool> write_block(const codec::FrameEntry& entry, codec::Bytes tables, const Digest& expected);

 private:
  enum class Step : std::uint8_t { applied, already, needs_repair };
  [[nodiscard]] StoreResult<Step> apply_entry(const codec::FrameEntry& entry, codec::Bytes tables, const Digest* base);
  [[nodiscard]] StoreResult<Step> decode_and_copy(const codec::FrameEntry& entry, codec::Bytes tables, codec::Bytes base);

  const Image* image_;
  Slot slot_;
  codec::BlockDecoder decoder_;
  std::vector<std::byte> content_;  // the block as it was in the image
};

/// A FILE record's payload into the image directory.
[[nodiscard]] StoreResult<void> apply_file(const Image& image, codec::Bytes file_payload);

/// Digests of all blocks, in order. `progress` is called with the bytes hashed so far, from any of the `threads`;
/// false stops with `cancelled`. Reads under sigbus_guard.
[[nodiscard]] StoreResult<std::vector<Digest>> hash_image(const Image& image, unsigned threads,
                                                          const std::function<bool(std::uint64_t)>& progress = {});
/// Digests of these blocks only, parallel to `ordinals`.
[[nodiscard]] StoreResult<std::vector<Digest>> hash_blocks(const Image& image, std::span<const std::uint64_t> ordinals);

}  // namespace deltarelay::relay
