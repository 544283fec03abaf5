// How fast the codec is, beside what the memory of the same machine gives: every rate is in dense bytes (the size of
// the new blocks), so that the rows can be divided by each other. Targets: encode >= half of "read both", decode +
// verify + apply >= 0.7 of memcpy (ARCHITECTURE.md, "Speed").
//
// The working set is larger than the caches; the weights are normal, the update has one size for all, which is what an
// optimizer step at a small learning rate leaves of BF16 weights.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "codec/bytes.hpp"
#include "codec/digest.hpp"
#include "codec/frame.hpp"
#include "codec/kernels/scan.hpp"
#include "codec/limits.hpp"

namespace {

using namespace deltarelay::codec;

constexpr std::size_t model_bytes = 192 * mib;
constexpr std::size_t block_bytes = block_bytes_default;
constexpr std::size_t block_count = model_bytes / block_bytes;
constexpr std::size_t blocks_per_frame = 16;

std::uint16_t rounded(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Two checkpoints whose share of changed elements is near `percent`, and the frames between them.
struct Workload {
  std::vector<std::byte> base = std::vector<std::byte>(model_bytes);
  std::vector<std::byte> next = std::vector<std::byte>(model_bytes);
  std::vector<EncodedFrame> frames;
  FrameStats stats;

  explicit Workload(std::int64_t percent) {
    // Found by trial on this distribution: the update whose rounding changes about this share.
    const float size = percent < 2 ? 2.8e-7f : percent < 4 ? 0.9e-6f : 1.65e-6f;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    // One block of each is drawn and shuffled by rotation: drawing all takes longer than the benchmark.
    std::vector<float> weights(1u << 20), updates((1u << 20) + 4099);
    for (float& value : weights) value = 0.02f * normal(random);
    for (float& value : updates) value = size * normal(random);
    for (std::size_t i = 0; i < model_bytes / 2; ++i) {
      const float master = weights[i % weights.size()];
      store_le(base.data() + 2 * i, rounded(master));
      store_le(next.data() + 2 * i, rounded(master + updates[i % updates.size()]));
    }
    encode();
  }
  [[nodiscard]] Bytes base_block(std::size_t i) const { return Bytes(base).subspan(i * block_bytes, block_bytes); }
  [[nodiscard]] Bytes next_block(std::size_t i) const { return Bytes(next).subspan(i * block_bytes, block_bytes); }
  [[nodiscard]] std::vector<BlockInput> inputs(std::size_t first) const {
    std::vector<BlockInput> out;
    for (std::size_t i = first; i < std::min(first + blocks_per_frame, block_count); ++i) {
      out.push_back(
          {{TensorIndex{0}, BlockIndex{static_cast<std::uint32_t>(i)}}, DType::BF16, base_block(i), next_block(i)});
    }
    return out;
  }
  void encode() {
    FrameEncoder encoder;
    for (std::size_t first = 0; first < block_count; first += blocks_per_frame) encoder.encode(inputs(first), frames);
    for (const EncodedFrame& frame : frames) stats += frame.stats;
  }
};

const Workload& workload(std::int64_t percent) {
  static std::map<std::int64_t, std::unique_ptr<Workload>> made;
  auto& slot = made[percent];
  if (!slot) slot = std::make_unique<Workload>(percent);
  return *slot;
}

void count_dense(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(model_bytes));
}
void count_payload(benchmark::State& state, const Workload& work) {
  std::uint64_t payload = 0;
  for (const EncodedFrame& frame : work.frames) payload += frame.payload.size();
  state.counters["changed_%"] =
      100.0 * static_cast<double>(work.stats.changed_elements) / static_cast<double>(model_bytes / 2);
  state.counters["payload_%"] = 100.0 * static_cast<double>(payload) / static_cast<double>(model_bytes);
}

// Reads both checkpoints and does nothing with them: what any encoder pays at the least.
void read_both(benchmark::State& state) {
  const Workload& work = workload(3);
  for (auto _ : state) {
    bool equal = true;
    for (std::size_t i = 0; i < block_count; ++i) {
      std::uint64_t difference = 0;
      const std::byte* a = work.base_block(i).data();
      const std::byte* b = work.next_block(i).data();
      for (std::size_t at = 0; at < block_bytes; at += 8) {
        std::uint64_t x, y;
        std::memcpy(&x, a + at, 8);
        std::memcpy(&y, b + at, 8);
        difference |= x ^ y;
      }
      equal &= difference == 0;
    }
    benchmark::DoNotOptimize(equal);
  }
  count_dense(state);
}

void copy_memory(benchmark::State& state) {
  const Workload& work = workload(3);
  std::vector<std::byte> out(model_bytes);
  for (auto _ : state) {
    for (std::size_t i = 0; i < block_count; ++i) {
      std::memcpy(out.data() + i * block_bytes, work.next_block(i).data(), block_bytes);
    }
    benchmark::ClobberMemory();
  }
  count_dense(state);
}

void hash(benchmark::State& state) {
  const Workload& work = workload(3);
  for (auto _ : state) {
    for (std::size_t i = 0; i < block_count; ++i) benchmark::DoNotOptimize(digest_of(work.next_block(i)));
  }
  count_dense(state);
}

void scan(benchmark::State& state) {
  const Workload& work = workload(state.range(0));
  std::vector<std::uint64_t> mask(kernels::mask_words(block_bytes / 2));
  for (auto _ : state) {
    for (std::size_t i = 0; i < block_count; ++i) {
      benchmark::DoNotOptimize(kernels::scan_changes(work.base_block(i), work.next_block(i), 2, mask.data()));
    }
  }
  count_dense(state);
}

// Scan, hash of the changed blocks, and code.
void encode(benchmark::State& state) {
  const Workload& work = workload(state.range(0));
  FrameEncoder encoder;
  std::vector<EncodedFrame> frames;
  for (auto _ : state) {
    for (std::size_t first = 0; first < block_count; first += blocks_per_frame) {
      frames.clear();
      encoder.encode(work.inputs(first), frames);
      benchmark::DoNotOptimize(frames.data());
    }
  }
  count_dense(state);
  count_payload(state, work);
}

// What an apply worker does per block: decode into the slot, compare the digest, copy into the image.
void decode_verify_apply(benchmark::State& state) {
  const Workload& work = workload(state.range(0));
  std::vector<std::byte> image = work.base, slot(block_bytes);
  BlockDecoder decoder;
  for (auto _ : state) {
    for (const EncodedFrame& frame : work.frames) {
      const auto view = FrameView::parse(frame.payload);
      for (const FrameEntry& entry : view->entries) {
        const std::size_t at = raw(entry.id.block) * block_bytes;
        // The image keeps the base, so that each round decodes the same: the copy goes to the same cache lines.
        const Bytes base = work.base_block(raw(entry.id.block));
        const bool decoded = decoder.decode(entry, view->tables, DType::BF16, base, slot).has_value();
        if (!decoded || digest_of(slot) != entry.target) state.SkipWithError("a block did not decode to its target");
        std::memcpy(image.data() + at, slot.data(), block_bytes);
      }
    }
    benchmark::ClobberMemory();
  }
  if (image != work.next) state.SkipWithError("the image is not the next checkpoint");
  count_dense(state);
  count_payload(state, work);
}

void decode_only(benchmark::State& state) {
  const Workload& work = workload(state.range(0));
  std::vector<std::byte> slot(block_bytes);
  BlockDecoder decoder;
  for (auto _ : state) {
    for (const EncodedFrame& frame : work.frames) {
      const auto view = FrameView::parse(frame.payload);
      for (const FrameEntry& entry : view->entries) {
        const Bytes base = work.base_block(raw(entry.id.block));
        benchmark::DoNotOptimize(decoder.decode(entry, view->tables, DType::BF16, base, slot));
      }
    }
  }
  count_dense(state);
}

BENCHMARK(read_both);
BENCHMARK(copy_memory);
BENCHMARK(hash);
BENCHMARK(scan)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(encode)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(decode_only)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(decode_verify_apply)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");

}  // namespace

BENCHMARK_MAIN();
