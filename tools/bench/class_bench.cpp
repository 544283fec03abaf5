// Where the time of the class encoding goes: its passes one by one, each by every set of kernels that this processor
// runs, on BF16 blocks of a trained pair. Rates are in dense bytes, so that rows can be divided by each other and by
// those of codec_bench. `bound` compares the payload with the entropy of the changes given the old exponent.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "codec/bytes.hpp"
#include "codec/encoding/class_code.hpp"
#include "codec/encoding/planes.hpp"
#include "codec/kernels/class_scan.hpp"
#include "codec/kernels/cpu.hpp"
#include "codec/kernels/scan.hpp"
#include "codec/limits.hpp"
#include "tools/bench/bench_pairs.hpp"

namespace {

using namespace deltarelay::codec;
using deltarelay::bench::Batch;

constexpr std::size_t blocks_wanted = 16;  // what one call of the encoder works on
constexpr std::size_t slack = 64;

std::vector<BlockInput> sample_blocks(std::int64_t percent) {
  std::vector<BlockInput> out;
  for (const Batch& batch : deltarelay::bench::changed_pair(percent).batches()) {
    for (const BlockInput& block : batch.blocks) {
      if (block.dtype == DType::BF16 && block.next.size() == block_bytes_default && out.size() < blocks_wanted) {
        out.push_back(block);
      }
    }
  }
  return out;
}

void count_dense(benchmark::State& state, const std::vector<BlockInput>& blocks) {
  std::size_t bytes = 0;
  for (const BlockInput& block : blocks) bytes += block.next.size();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

// Blocks, what was collected of them, and a model: what every pass begins with.
struct Prepared {
  std::vector<BlockInput> blocks;
  ClassEncoder encoder;
  kernels::ClassMap map;
  std::vector<std::vector<std::uint64_t>> masks;

  explicit Prepared(std::int64_t percent) : blocks(sample_blocks(percent)) {
    ClassSample sample;
    for (const BlockInput& block : blocks) sample.add(2, block.base, block.next, block.base.size());
    map = sample.fit().map();
    const auto model = encoder.add_model(sample);
    for (const BlockInput& block : blocks) {
      masks.emplace_back(kernels::mask_words(block.base.size() / 2));
      ScannedBlock scanned{block.dtype, 2, block.base, block.next, {}, 0, {}};
      encoder.scan(*model, scanned, masks.back().data());
      if (scanned.changed_count != 0) encoder.collect(scanned);
    }
    encoder.close();
  }
};

Prepared& prepared(std::int64_t percent) {
  static std::map<std::int64_t, std::unique_ptr<Prepared>> made;
  auto& slot = made[percent];
  if (!slot) slot = std::make_unique<Prepared>(percent);
  return *slot;
}

const kernels::ClassKernels* kernels_numbered(std::int64_t number) {
  if (number == 0) return &kernels::class_kernels_portable;
#if defined(__x86_64__)
  if (number == 1 && kernels::cpu_level() >= kernels::CpuLevel::avx2) return &kernels::class_kernels_avx2;
  if (number == 2 && kernels::class_kernels_avx512_run_here()) return &kernels::class_kernels_avx512;
#endif
  return nullptr;
}

// Old values and the mask of changes into ranks, keys and steps.
void split(benchmark::State& state) {
  const kernels::ClassKernels* const set = kernels_numbered(state.range(1));
  if (set == nullptr) return state.SkipWithError("not on this processor");
  const Prepared& work = prepared(state.range(0));
  const std::size_t elements = block_bytes_default / 2;
  std::vector<std::uint32_t> ranks(kernels::classes_max * (elements + slack));
  std::vector<std::uint8_t> keys(elements + slack);
  std::vector<std::byte> steps(2 * elements + slack);
  for (auto _ : state) {
    for (std::size_t i = 0; i < work.blocks.size(); ++i) {
      kernels::ClassSplit out;
      for (unsigned c = 0; c < kernels::classes_max; ++c) out.ranks[c] = ranks.data() + c * (elements + slack);
      out.keys = keys.data();
      out.steps = steps.data();
      set->split(work.map, work.blocks[i].base.data(), work.blocks[i].next.data(), 2, elements, work.masks[i].data(),
                 out);
      benchmark::DoNotOptimize(out.keys);
    }
  }
  count_dense(state, work.blocks);
}

// Marks (here: none, which costs the same) into positions.
void find(benchmark::State& state) {
  const kernels::ClassKernels* const set = kernels_numbered(state.range(1));
  if (set == nullptr) return state.SkipWithError("not on this processor");
  const Prepared& work = prepared(state.range(0));
  const std::size_t elements = block_bytes_default / 2, stride = elements / 8 + slack;
  const std::vector<std::byte> bits(kernels::classes_max * stride);
  std::vector<std::uint64_t> changed(kernels::mask_words(elements));
  std::vector<std::uint8_t> keys(elements + slack);
  for (auto _ : state) {
    for (const BlockInput& block : work.blocks) {
      kernels::ClassMarks marks;
      marks.bits = bits.data();
      marks.stride_bytes = stride;
      benchmark::DoNotOptimize(set->find(work.map, block.base.data(), 2, elements, marks, changed.data(), keys.data()));
    }
  }
  count_dense(state, work.blocks);
}

void apply(benchmark::State& state) {
  const kernels::ClassKernels* const set = kernels_numbered(state.range(1));
  if (set == nullptr) return state.SkipWithError("not on this processor");
  const Prepared& work = prepared(state.range(0));
  const std::size_t elements = block_bytes_default / 2;
  const std::vector<std::byte> steps(2 * elements + slack);
  std::vector<std::byte> out(2 * elements);
  for (auto _ : state) {
    for (std::size_t i = 0; i < work.blocks.size(); ++i) {
      benchmark::DoNotOptimize(
          set->apply(work.blocks[i].base.data(), 2, elements, work.masks[i].data(), steps.data(), out.data()));
    }
  }
  count_dense(state, work.blocks);
}

// Scan, split, gaps and steps into symbols: all of encoding but its coder and the hash.
void collect(benchmark::State& state) {
  const std::vector<BlockInput> blocks = sample_blocks(state.range(0));
  std::vector<std::uint64_t> mask(kernels::mask_words(block_bytes_default / 2));
  ClassEncoder encoder;
  for (auto _ : state) {
    ClassSample sample;
    for (const BlockInput& block : blocks) sample.add(2, block.base, block.next, 1u << 14);
    encoder.clear();
    const auto model = encoder.add_model(sample);
    for (const BlockInput& block : blocks) {
      ScannedBlock scanned{block.dtype, 2, block.base, block.next, {}, 0, {}};
      encoder.scan(*model, scanned, mask.data());
      if (scanned.changed_count != 0) encoder.collect(scanned);
    }
  }
  count_dense(state, blocks);
}

double bound_bits(const std::vector<BlockInput>& blocks) {
  std::array<double, 256> members{}, changes{};
  std::vector<std::array<double, 64>> steps(256);
  double bits = 0;
  for (const BlockInput& block : blocks) {
    for (std::size_t at = 0; at < block.base.size(); at += 2) {
      const auto old = load_le<std::uint16_t>(block.base.data() + at),
                 now = load_le<std::uint16_t>(block.next.data() + at);
      const std::uint8_t key = class_key(old);
      members[key] += 1;
      if (old == now) continue;
      const StepToken step = step_token(old, now);
      changes[key] += 1;
      steps[key][step.token] += 1;
      bits += step.raw_bits;
    }
  }
  for (std::size_t key = 0; key < 256; ++key) {
    const double n = members[key], k = changes[key];
    if (k > 0 && k < n) bits -= k * std::log2(k / n) + (n - k) * std::log2(1 - k / n);
    for (const double s : steps[key]) bits -= s > 0 ? s * std::log2(s / k) : 0;
  }
  return bits;
}

// Whole frames, headers and digests and all, against the entropy given the old exponent.
void bound(benchmark::State& state) {
  const std::vector<BlockInput> blocks = sample_blocks(state.range(0));
  FrameEncoder encoder;
  std::vector<EncodedFrame> frames;
  for (auto _ : state) {
    frames.clear();
    encoder.encode(blocks, frames);
  }
  std::size_t payload = 0;
  for (const EncodedFrame& frame : frames) payload += frame.payload.size();
  const double dense = static_cast<double>(blocks.size() * block_bytes_default), bits = bound_bits(blocks);
  state.counters["payload_%"] = 100 * static_cast<double>(payload) / dense;
  state.counters["bound_%"] = 100 * bits / 8 / dense;
  state.counters["of_bound"] = static_cast<double>(payload) * 8 / bits;
}

void planes_encode(benchmark::State& state) {
  const std::vector<BlockInput> blocks = sample_blocks(3);
  PlanesEncoder encoder;
  std::vector<std::byte> out;
  for (auto _ : state) {
    out.clear();
    for (const BlockInput& block : blocks)
      benchmark::DoNotOptimize(encoder.encode(block.next, 2, block.next.size(), out));
  }
  count_dense(state, blocks);
  state.counters["payload_%"] =
      100 * static_cast<double>(out.size()) / static_cast<double>(blocks.size() * block_bytes_default);
}

void planes_decode(benchmark::State& state) {
  const std::vector<BlockInput> blocks = sample_blocks(3);
  PlanesEncoder encoder;
  std::vector<std::vector<std::byte>> coded(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!encoder.encode(blocks[i].next, 2, blocks[i].next.size(), coded[i])) state.SkipWithError("planes do not pay");
  }
  PlanesDecoder decoder;
  std::vector<std::byte> slot(block_bytes_default);
  for (auto _ : state) {
    for (const auto& data : coded) benchmark::DoNotOptimize(decoder.decode(data, 2, slot).has_value());
  }
  count_dense(state, blocks);
}

// Kernels: 0 portable, 1 AVX2, 2 AVX-512.
void every_kernel(benchmark::internal::Benchmark* it) {
  it->ArgNames({"percent", "kernels"})->ArgsProduct({{1, 5}, {0, 1, 2}});
}
BENCHMARK(split)->Apply(every_kernel);
BENCHMARK(find)->Apply(every_kernel);
BENCHMARK(apply)->Apply(every_kernel);
BENCHMARK(collect)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(bound)->Arg(1)->Arg(3)->Arg(5)->ArgName("percent");
BENCHMARK(planes_encode);
BENCHMARK(planes_decode);

}  // namespace

BENCHMARK_MAIN();
