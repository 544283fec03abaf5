#include "relay/store/applier.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "codec/limits.hpp"
#include "relay/store/ledger.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;

/// Front of a slot file; the block's bytes follow at slot_header_bytes. Local to one machine, never sent.
struct SlotHeader {
  std::uint64_t copying;  ///< 1 from before the copy's first byte to after its last
  std::uint64_t ordinal;
  std::uint64_t bytes;
  codec::Digest layout, target;
  codec::Digest kernel_boot;  ///< after a power cut the slot on disk may be older than the block: then it is not used
};
constexpr std::size_t slot_header_bytes = 4096;
constexpr std::size_t slot_bytes = slot_header_bytes + codec::block_bytes_max;
static_assert(sizeof(SlotHeader) <= slot_header_bytes);

codec::Digest this_kernel_boot() {
  static const std::string id = kernel_boot_id();
  return codec::digest_of(std::as_bytes(std::span(id)));
}

StoreError bad_frame(const boost::system::error_code& code, const Image& image) {
  return {code, "apply frame to", image.checkpoint().directory().string(), 0};
}

}  // namespace

StoreResult<std::unique_ptr<ApplyWorker>> ApplyWorker::open(const std::filesystem::path& slot, const Image& image) {
  auto file = FileOps::real().open(slot, OpenMode::create);
  if (!file) return file.error();
  if (const int error = ::posix_fallocate(file->descriptor(), 0, static_cast<off_t>(slot_bytes)); error != 0)
    return system_error(error, "reserve space for", slot.string());
  return std::unique_ptr<ApplyWorker>(new ApplyWorker(image, std::move(*file)));
}

ApplyOutcome ApplyWorker::apply(const codec::Record& frame, DigestTable& table) {
  ApplyOutcome outcome;
  auto view = codec::FrameView::parse(frame.payload());
  if (!view) {
    outcome.error = bad_frame(view.error(), image_);
    return outcome;
  }
  const auto& layout = *image_.layout();
  for (const auto& entry : view->entries) {
    if (outcome.error) break;
    if (!layout.contains(entry.id)) {
      outcome.error = bad_frame(make_error_code(codec::errc::block_out_of_range), image_);
      break;
    }
    const std::uint64_t ordinal = layout.ordinal(entry.id);
    if (!table.set_target(ordinal, entry.target)) {
      outcome.error = bad_frame(make_error_code(codec::errc::malformed_payload), image_);
      break;
    }
    apply_block(entry, view->tables, outcome);
  }
  return outcome;
}

ApplyOutcome ApplyWorker::apply_sync(codec::Bytes payload, std::span<const codec::Digest> accepted) {
  ApplyOutcome outcome;
  auto view = codec::FrameView::parse(payload);
  if (!view) {
    outcome.error = bad_frame(view.error(), image_);
    return outcome;
  }
  const auto& layout = *image_.layout();
  for (const auto& entry : view->entries) {
    if (outcome.error) break;
    if (!layout.contains(entry.id) || layout.ordinal(entry.id) >= accepted.size()) {
      outcome.error = bad_frame(make_error_code(codec::errc::block_out_of_range), image_);
      break;
    }
    const std::uint64_t ordinal = layout.ordinal(entry.id);
    if (accepted[ordinal] != entry.target)
      outcome.needs_repair.push_back(ordinal);
    else
      apply_block(entry, view->tables, outcome);
  }
  return outcome;
}

// A block coded over its base is decoded before anything is hashed: that the result has the target's digest proves the
// base as well. Only where it has not, it matters whether the block is done already or needs repair.
void ApplyWorker::apply_block(const codec::FrameEntry& entry, codec::Bytes tables, ApplyOutcome& outcome) {
  const auto& layout = *image_.layout();
  const std::uint64_t ordinal = layout.ordinal(entry.id);
  const bool with_base = codec::needs_base(entry.encoding);
  current_.resize(layout.size_of(entry.id));
  if (auto done = image_.read_block(entry.id, current_); !done) {
    outcome.error = done.error();
    return;
  }
  const auto is_done = [&] { return codec::digest_of(codec::Bytes(current_)) == entry.target; };
  if (!with_base && is_done()) {
    ++outcome.already;
    return;
  }
  next_.resize(current_.size());
  const auto decoded = decoder_.decode(entry, tables, layout.tensor(entry.id.tensor).dtype,
                                       with_base ? codec::Bytes(current_) : codec::Bytes(), next_);
  if (!decoded || *decoded != entry.target) {
    if (with_base && is_done()) {
      ++outcome.already;
    } else {
      outcome.needs_repair.push_back(ordinal);
    }
    return;
  }
  SlotHeader header{1, ordinal, next_.size(), layout.digest(), entry.target, this_kernel_boot()};
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  // Content before the flag: a slot that says "copying" is whole (the digest proves it again at recovery). A write that
  // fails after the flag leaves it set, and recovery finishes the block.
  const auto copy = [&]() -> StoreResult<void> {
    if (auto done = FileOps::real().write_at(slot_, slot_header_bytes, next_); !done) return done;
    if (auto done = FileOps::real().write_at(slot_, 0, header_bytes); !done) return done;
    if (auto done = image_.write_block(entry.id, next_); !done) return done;
    header.copying = 0;
    return FileOps::real().write_at(slot_, 0, header_bytes);
  };
  if (auto copied = copy(); !copied) {
    outcome.error = copied.error();
    return;
  }
  ++outcome.applied;
}

StoreResult<bool> recover_slot(const std::filesystem::path& slot, Image& image) {
  auto content = read_file(FileOps::real(), slot, slot_bytes);
  if (!content) {
    if (content.error().code == boost::system::errc::no_such_file_or_directory) return false;
    return content.error();
  }
  if (content->size() < slot_bytes) return false;
  SlotHeader header{};
  std::memcpy(&header, content->data(), sizeof header);
  const auto& layout = *image.layout();
  if (header.copying != 1 || header.layout != layout.digest() || header.kernel_boot != this_kernel_boot() ||
      header.ordinal >= layout.block_count())
    return false;
  const auto id = layout.block_at(header.ordinal);
  if (header.bytes != layout.size_of(id)) return false;
  const auto block = codec::Bytes(*content).subspan(slot_header_bytes, header.bytes);
  if (codec::digest_of(block) != header.target) return false;
  auto held = image.try_hold_engines();
  if (!held) return held.error();
  if (!*held)
    return StoreError{make_error_code(store_errc::engine_reads), "finish an interrupted write to",
                      image.checkpoint().directory().string(), 0};
  if (auto done = image.write_block(id, block); !done) return done.error();
  if (auto done = image.sync(); !done) return done.error();
  return true;
}

StoreResult<std::vector<codec::Digest>> hash_image(const Image& image, unsigned threads,
                                                   const std::atomic<bool>& cancel) {
  const auto& layout = *image.layout();
  std::vector<codec::Digest> table(layout.block_count());
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::optional<StoreError> failure;
  const auto work = [&] {
    std::vector<std::byte> block;
    for (std::uint64_t i = next++; i < table.size() && !cancel; i = next++) {
      const auto id = layout.block_at(i);
      block.resize(layout.size_of(id));
      if (auto done = image.read_block(id, block); !done) {
        const std::scoped_lock lock(mutex);
        if (!failure) failure = done.error();
        next = table.size();
        return;
      }
      table[i] = codec::digest_of(codec::Bytes(block));
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  if (failure) return *failure;
  if (cancel) return system_error(ECANCELED, "hash", image.checkpoint().directory().string());
  return table;
}

}  // namespace deltarelay::relay
