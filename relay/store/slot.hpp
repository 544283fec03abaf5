// A slot: the scratch buffer in which one worker decodes a block, as a mapped file in the state directory.
//
//   decode into data() -> digest agrees -> arm() -> copy to the image -> disarm()
//
// A process killed during the copy leaves an armed slot in the page cache, from which the next start finishes the copy:
// a block is never left half old, half new. After a power cut the slot's pages may be older than the image's, so a slot
// of another boot of the machine is not used; the image is hashed then. One thread per slot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "codec/digest.hpp"
#include "relay/store/image.hpp"

namespace deltarelay::relay {

class Slot {
 public:
  /// `directory` is made when absent; the file is slot-<number>. An armed slot is kept as it is until arm() is next called.
  [[nodiscard]] static StoreResult<Slot> open(const std::filesystem::path& directory, unsigned number, std::string kernel_boot_id);
  Slot(Slot&&) noexcept;
  Slot& operator=(Slot&&) noexcept;
  ~Slot();

  /// codec::block_bytes_max bytes of scratch. REQUIRES not armed.
  [[nodiscard]] codec::MutableBytes data() noexcept;
  void arm(std::uint64_t ordinal, std::size_t bytes, const Digest& target, const Digest& layout) noexcept;
  void disarm() noexcept;
  [[nodiscard]] bool is_armed() const noexcept;
  /// Finishes the copy of an armed slot of this boot and layout, when the block is not at its target yet; then disarms.
  /// True when a block was written.
  [[nodiscard]] StoreResult<bool> recover(const Image& image) noexcept;

 private:
  struct Header;
  Slot() = default;
  [[nodiscard]] Header& header() const noexcept;
  std::byte* memory_ = nullptr;
  std::filesystem::path path_;
  std::string kernel_boot_id_;
};

/// Finishes what workers of an earlier process left in `directory`. Call before any block is read or written.
/// Returns the number of blocks that were finished.
[[nodiscard]] StoreResult<std::uint64_t> recover_slots(const std::filesystem::path& directory, const std::string& kernel_boot_id,
                                                       const Image& image);

}  // namespace deltarelay::relay
