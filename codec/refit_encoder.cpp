#include "codec/refit_encoder.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "codec/encoding/changes.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

// First ordinals of the batches, and the end of the last: full blocks `blocks_per_frame` at a time, small ones up to
// the same number of bytes or as many as a frame may hold.
std::vector<std::uint64_t> cut_batches(const Layout& layout, std::size_t blocks_per_frame) {
  const std::uint64_t bytes_max = std::uint64_t{layout.block_bytes()} * blocks_per_frame;
  std::vector<std::uint64_t> out{0};
  std::uint64_t bytes = 0, ordinal = 0;
  for (std::uint32_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    const std::uint32_t blocks = layout.block_count(TensorIndex{tensor});
    for (std::uint32_t block = 0; block < blocks; ++block, ++ordinal) {
      const std::size_t size = layout.size_of({TensorIndex{tensor}, BlockIndex{block}});
      if (ordinal != out.back() && (bytes + size > bytes_max || ordinal - out.back() == frame_blocks_max)) {
        out.push_back(ordinal);
        bytes = 0;
      }
      bytes += size;
    }
  }
  if (ordinal != out.back()) out.push_back(ordinal);
  return out;
}

// What all workers share. Digest tables are written without a lock: each block has one writer.
struct Work {
  const RefitInput& input;
  const RefitOptions& options;
  RefitControl& control;
  const FrameSink& sink;
  const std::vector<std::uint64_t> batches;
  const bool hash_base;

  RefitResult result;
  std::atomic<std::size_t> next_batch{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards what follows, and result.stats and result.frames
  std::exception_ptr exception;
  std::optional<Failure> failure;

  [[nodiscard]] bool stopping() const noexcept { return stop || control.cancel; }
  void fail(Failure why) {
    const std::scoped_lock lock(mutex);
    if (!failure) failure = std::move(why);
    stop = true;
  }
};

class Worker {
 public:
  explicit Worker(Work& work) : work_(work), layout_(work.input.layout) {}

  void run() {
    while (!work_.stopping()) {
      const std::size_t batch = work_.next_batch++;
      if (batch + 1 >= work_.batches.size()) break;
      if (!encode(work_.batches[batch], work_.batches[batch + 1])) break;
    }
    const std::scoped_lock lock(work_.mutex);
    work_.result.stats += stats_;
    work_.result.frames += frame_count_;
  }

 private:
  bool encode(std::uint64_t begin, std::uint64_t end) {
    blocks_.clear();
    for (std::uint64_t ordinal = begin; ordinal < end; ++ordinal) {
      if (!read_block(ordinal, ordinal - begin)) return false;
    }
    frames_.clear();
    encoder_.encode(blocks_, frames_);
    note_digests(begin);
    for (EncodedFrame& frame : frames_) {
      // Counted when it is on its way, so that no progress is shown for what the sink still refuses.
      const FrameStats stats = frame.stats;
      const std::size_t payload_bytes = frame.payload.size();
      work_.sink(std::move(frame));
      work_.control.changed_blocks += stats.changed_blocks;
      work_.control.changed_elements += stats.changed_elements;
      work_.control.payload_bytes += payload_bytes;
      ++work_.control.frames;
      ++frame_count_;
      count_frame(stats);
    }
    for (const BlockInput& block : blocks_) {
      work_.control.done_bytes += block.next.size();
      const std::uint64_t elements = block.next.size() / block_width(block.dtype, block.next.size());
      work_.control.done_elements += elements;
      stats_.elements += elements;
    }
    stats_.blocks += blocks_.size();
    work_.control.done_blocks += blocks_.size();
    return true;
  }

  // Of a frame's blocks only what changed: all blocks and elements are counted where they are read.
  void count_frame(FrameStats stats) {
    stats.blocks = stats.elements = 0;
    stats_ += stats;
  }

  bool read_block(std::uint64_t ordinal, std::size_t slot) {
    const BlockId id = layout_.block_at(ordinal);
    BlockInput block{id, layout_.tensor(id.tensor).dtype, {}, {}};
    if (work_.input.base && !read_from(work_.input.base, id, scratch(2 * slot), block.base)) return false;
    if (!read_from(work_.input.next, id, scratch(2 * slot + 1), block.next)) return false;
    blocks_.push_back(block);
    return true;
  }

  bool read_from(const BlockReader& reader, BlockId id, MutableBytes memory, Bytes& out) {
    Result<Bytes> bytes = reader(id, memory);
    if (bytes && bytes->size() == layout_.size_of(id)) {
      out = *bytes;
      return true;
    }
    const error_code why = bytes ? error_code(errc::block_size_mismatch) : bytes.error();
    work_.fail({why, display_name(layout_.tensor(id.tensor).name), "block " + std::to_string(raw(id.block))});
    return false;
  }

  // Untouched until a reader copies into it, so a reader that does not costs no memory.
  MutableBytes scratch(std::size_t slot) {
    if (scratch_.size() <= slot) scratch_.resize(slot + 1);
    if (!scratch_[slot]) scratch_[slot] = std::make_unique_for_overwrite<std::byte[]>(layout_.block_bytes());
    return {scratch_[slot].get(), layout_.block_bytes()};
  }

  void note_digests(std::uint64_t begin) {
    std::vector<Digest>& next = work_.result.next_digests;
    std::size_t at = 0;
    const auto note_unchanged = [&](std::size_t until) {
      for (; at < until; ++at) {
        const std::uint64_t ordinal = begin + at;
        next[ordinal] = work_.hash_base ? digest_of(blocks_[at].base) : work_.input.base_digests[ordinal];
        if (work_.hash_base) work_.result.base_digests[ordinal] = next[ordinal];
      }
    };
    for (const EncodedFrame& frame : frames_) {
      for (const auto& [id, target] : frame.targets) {
        const std::uint64_t ordinal = layout_.ordinal(id);
        note_unchanged(static_cast<std::size_t>(ordinal - begin));
        next[ordinal] = target;
        if (work_.hash_base) work_.result.base_digests[ordinal] = digest_of(blocks_[at].base);
        ++at;
      }
    }
    note_unchanged(blocks_.size());
  }

  Work& work_;
  const Layout& layout_;
  FrameEncoder encoder_;
  std::vector<BlockInput> blocks_;
  std::vector<EncodedFrame> frames_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  FrameStats stats_;
  std::uint64_t frame_count_ = 0;
};

void run_worker(Work& work) noexcept {
  try {
    Worker(work).run();
  } catch (...) {
    const std::scoped_lock lock(work.mutex);
    if (!work.exception) work.exception = std::current_exception();
    work.stop = true;
  }
}

}  // namespace

Checked<RefitResult> encode_refit(const RefitInput& input, const RefitOptions& options, RefitControl& control,
                                  const FrameSink& sink) {
  const std::uint64_t block_count = input.layout.block_count();
  assert(options.threads >= 1 && options.blocks_per_frame >= 1 && options.blocks_per_frame <= frame_blocks_max);
  assert(input.base_digests.empty() || input.base_digests.size() == block_count);
  const bool hash_base = input.base && input.base_digests.empty();
  Work work{input, options, control, sink, cut_batches(input.layout, options.blocks_per_frame), hash_base, {}, {},
            {},    {},      {},      {}};
  work.result.next_digests.resize(block_count);
  if (hash_base) work.result.base_digests.resize(block_count);
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back([&work] { run_worker(work); });
    run_worker(work);
  }
  if (work.exception) std::rethrow_exception(work.exception);
  if (work.failure) return *std::move(work.failure);
  if (control.cancel && work.result.stats.blocks != block_count) {
    return Failure{boost::system::errc::make_error_code(boost::system::errc::operation_canceled), {}, {}};
  }
  return std::move(work.result);
}

}  // namespace deltarelay::codec
