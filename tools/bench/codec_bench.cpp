// How fast the codec is, beside what the memory of the same machine gives in the same run. Every rate is in dense bytes
// (the size of the new checkpoint), so that rows can be divided by each other: tools/bench/table.py does, and
// docs/benchmarks.md holds its table. Targets: encode at least half of read_both, decode_verify_apply at least 0.7 of
// copy_memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "codec/digest.hpp"
#include "codec/frame.hpp"
#include "codec/kernels/scan.hpp"
#include "codec/limits.hpp"
#include "codec/refit_encoder.hpp"
#include "tools/bench/trained_pair.hpp"

namespace {

using namespace deltarelay::codec;
using deltarelay::bench::Batch;
using deltarelay::bench::TrainedPair;

/// Gives the batches of a pair in turns, and counts the bytes that were worked on.
class Turns {
 public:
  Turns(benchmark::State& state, std::int64_t percent) : state_(state), pair_(TrainedPair::changed(percent)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() { state_.SetBytesProcessed(static_cast<std::int64_t>(bytes_)); }

  const Batch& next() {
    // Goes on where the last benchmark stopped, so that no repetition begins with a warm batch.
    static std::size_t turn = 0;
    const Batch& batch = pair_.batches()[turn++ % pair_.batches().size()];
    bytes_ += batch.bytes;
    return batch;
  }
  void count_payload() {
    state_.counters["changed_%"] = pair_.changed_percent();
    state_.counters["payload_%"] = pair_.payload_percent();
  }

 private:
  benchmark::State& state_;
  const TrainedPair& pair_;
  std::uint64_t bytes_ = 0;
};

/// Reads both checkpoints and does nothing with them: what any encoder pays at the least.
void read_both(benchmark::State& state) {
  Turns turns(state, 3);
  for (auto _ : state) {
    std::uint64_t difference = 0;
    for (const BlockInput& block : turns.next().blocks) {
      std::uint64_t lanes[4] = {};
      for (std::size_t at = 0; at + 32 <= block.next.size(); at += 32) {
        std::uint64_t x[4], y[4];
        std::memcpy(x, block.base.data() + at, 32);
        std::memcpy(y, block.next.data() + at, 32);
        for (int lane = 0; lane < 4; ++lane) lanes[lane] |= x[lane] ^ y[lane];
      }
      difference |= lanes[0] | lanes[1] | lanes[2] | lanes[3];
    }
    benchmark::DoNotOptimize(difference);
  }
}

void copy_memory(benchmark::State& state) {
  Turns turns(state, 3);
  const MutableBytes image = TrainedPair::image();
  for (auto _ : state) {
    const Batch& batch = turns.next();
    for (std::size_t i = 0; i < batch.blocks.size(); ++i)
      std::ranges::copy(batch.blocks[i].next, image.begin() + static_cast<std::ptrdiff_t>(batch.offsets[i]));
    benchmark::ClobberMemory();
  }
}

void hash(benchmark::State& state) {
  Turns turns(state, 3);
  for (auto _ : state)
    for (const BlockInput& block : turns.next().blocks) benchmark::DoNotOptimize(digest_of(block.next));
}

void scan(benchmark::State& state) {
  Turns turns(state, state.range(0));
  std::vector<std::uint64_t> mask(kernels::mask_words(block_bytes_default));
  for (auto _ : state)
    for (const BlockInput& block : turns.next().blocks)
      benchmark::DoNotOptimize(kernels::scan_changes(block.base, block.next, element_width(block.dtype), mask.data()));
  turns.count_payload();
}

/// Scan, hash of the changed blocks, and code.
void encode(benchmark::State& state) {
  Turns turns(state, state.range(0));
  FrameEncoder encoder;
  std::vector<EncodedFrame> frames;
  for (auto _ : state) {
    frames.clear();
    encoder.encode(turns.next().blocks, frames);
    benchmark::DoNotOptimize(frames.data());
  }
  turns.count_payload();
}

/// What publish does with the whole checkpoint, on so many threads. In real time.
void publish(benchmark::State& state) {
  const TrainedPair& pair = TrainedPair::changed(3);
  std::vector<Digest> base_digests;
  for (const Batch& batch : pair.batches())
    for (const BlockInput& block : batch.blocks) base_digests.push_back(digest_of(block.base));
  const RefitInput input{pair.layout(), reader_of(pair.base()), reader_of(pair.next()), base_digests};
  RefitOptions options;
  options.threads = static_cast<unsigned>(state.range(0));
  for (auto _ : state) {
    RefitControl control;
    const auto result = encode_refit(input, options, control,
                                     [](EncodedFrame&& frame) { benchmark::DoNotOptimize(frame.payload.data()); });
    if (!result) state.SkipWithError(result.error().text().c_str());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(pair.bytes()));
}

/// Parses frames of a batch, decodes each block over what `base_of` gives for it, and gives the block's number, its new
/// content and whether that is what the frame promised to `use`.
template <class BaseOf, class Use>
void decode_frames(const Batch& batch, const std::vector<EncodedFrame>& frames, BlockDecoder& decoder,
                   std::vector<std::byte>& slot, BaseOf base_of, Use use) {
  for (const EncodedFrame& frame : frames) {
    const auto view = FrameView::parse(frame.payload);
    std::size_t at = 0;  // blocks that did not change are in no frame
    for (const FrameEntry& entry : view->entries) {
      while (batch.blocks[at].id != entry.id) ++at;
      const BlockInput& block = batch.blocks[at];
      const MutableBytes content = MutableBytes(slot).first(block.base.size());
      const auto decoded = decoder.decode(entry, view->tables, block.dtype, base_of(at), content);
      use(at, content, decoded && *decoded == entry.target);
    }
  }
}

void decode_only(benchmark::State& state) {
  Turns turns(state, state.range(0));
  std::vector<std::byte> slot(block_bytes_default);
  BlockDecoder decoder;
  for (auto _ : state) {
    const Batch& batch = turns.next();
    decode_frames(
        batch, batch.frames, decoder, slot, [&](std::size_t at) { return batch.blocks[at].base; },
        [](std::size_t, Bytes content, bool) { benchmark::DoNotOptimize(content.data()); });
  }
  turns.count_payload();
}

/// An image that is brought from base to next and back again, a batch at a time.
class LiveImage {
 public:
  explicit LiveImage(const TrainedPair& pair) : memory_(static_cast<std::size_t>(pair.bytes())) {
    for (const Batch& batch : pair.batches()) {
      for (std::size_t i = 0; i < batch.blocks.size(); ++i)
        std::ranges::copy(batch.blocks[i].base, memory_.begin() + static_cast<std::ptrdiff_t>(batch.offsets[i]));
    }
  }
  static LiveImage& of(std::int64_t percent) {
    static std::map<std::int64_t, std::unique_ptr<LiveImage>> made;
    auto& slot = made[percent];
    if (!slot) slot = std::make_unique<LiveImage>(TrainedPair::changed(percent));
    return *slot;
  }
  /// The frames that fit what the image holds.
  const std::vector<EncodedFrame>& turn(const Batch& batch) {
    bool& at_next = at_next_[&batch];
    at_next = !at_next;
    return at_next ? batch.frames : batch.back;
  }
  MutableBytes block(const Batch& batch, std::size_t i) {
    return MutableBytes(memory_).subspan(batch.offsets[i], batch.blocks[i].next.size());
  }
  bool holds_what_it_should(const Batch& batch) {
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
      const BlockInput& block_input = batch.blocks[i];
      if (!std::ranges::equal(block(batch, i), at_next_[&batch] ? block_input.next : block_input.base)) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> memory_;
  std::map<const Batch*, bool> at_next_;
};

/// What an apply worker does per block: decode over the image's block into the slot, compare the digest, copy into the
/// image.
void decode_verify_apply(benchmark::State& state) {
  Turns turns(state, state.range(0));
  LiveImage& image = LiveImage::of(state.range(0));
  std::vector<std::byte> slot(block_bytes_default);
  BlockDecoder decoder;
  const Batch* last = nullptr;
  for (auto _ : state) {
    const Batch& batch = turns.next();
    decode_frames(
        batch, image.turn(batch), decoder, slot, [&](std::size_t at) { return Bytes(image.block(batch, at)); },
        [&](std::size_t at, Bytes content, bool verified) {
          if (!verified) state.SkipWithError("a block did not decode to its target");
          std::ranges::copy(content, image.block(batch, at).begin());
        });
    benchmark::ClobberMemory();
    last = &batch;
  }
  if (last != nullptr && !image.holds_what_it_should(*last))
    state.SkipWithError("the image does not hold the new content");
  turns.count_payload();
}

BENCHMARK(read_both);
BENCHMARK(copy_memory);
BENCHMARK(hash);
BENCHMARK(scan)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(encode)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(decode_only)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(decode_verify_apply)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(publish)->Arg(1)->Arg(2)->ArgName("threads")->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
