// How fast the codec is, beside what the memory of the same machine gives in the same run. Every rate is in dense bytes
// (the size of the new checkpoint), so that rows can be divided by each other: tools/bench/table.py does, and
// docs/benchmarks.md holds its table. Targets: encode at least half of read_both, decode_verify_apply at least 0.7 of
// copy_memory.
#include <benchmark/benchmark.h>

#include <vector>

#include "codec/digest.hpp"
#include "codec/refit_encoder.hpp"
#include "tools/bench/bench_pairs.hpp"
#include "tools/bench/codec_passes.hpp"

namespace {

using namespace deltarelay::codec;
using deltarelay::bench::Batch;
using deltarelay::bench::changed_pair;
using deltarelay::bench::LiveImage;
using deltarelay::bench::Passes;
using deltarelay::bench::TrainedPair;

/// Gives the batches of a pair in turns, and counts the bytes that were worked on.
class Turns {
 public:
  Turns(benchmark::State& state, std::int64_t percent) : state_(state), pair_(changed_pair(percent)) {}
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

void read_both(benchmark::State& state) {
  Turns turns(state, 3);
  Passes passes;
  for (auto _ : state) benchmark::DoNotOptimize(passes.compare(turns.next()));
}

void copy_memory(benchmark::State& state) {
  Turns turns(state, 3);
  Passes passes;
  const MutableBytes image = deltarelay::bench::spare_memory();
  for (auto _ : state) {
    benchmark::DoNotOptimize(passes.copy(turns.next(), image));
    benchmark::ClobberMemory();
  }
}

void hash(benchmark::State& state) {
  Turns turns(state, 3);
  Passes passes;
  for (auto _ : state) benchmark::DoNotOptimize(passes.digest(turns.next()));
}

void scan(benchmark::State& state) {
  Turns turns(state, state.range(0));
  Passes passes;
  for (auto _ : state) benchmark::DoNotOptimize(passes.scan(turns.next()));
  turns.count_payload();
}

void encode(benchmark::State& state) {
  Turns turns(state, state.range(0));
  Passes passes;
  for (auto _ : state) benchmark::DoNotOptimize(passes.encode(turns.next()));
  turns.count_payload();
}

/// What publish does with the whole checkpoint, on so many threads. In real time.
void publish(benchmark::State& state) {
  const TrainedPair& pair = changed_pair(3);
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

void decode_only(benchmark::State& state) {
  Turns turns(state, state.range(0));
  Passes passes;
  for (auto _ : state) benchmark::DoNotOptimize(passes.decode(turns.next()));
  if (passes.failed()) state.SkipWithError("a block did not decode to its target");
  turns.count_payload();
}

void decode_verify_apply(benchmark::State& state) {
  Turns turns(state, state.range(0));
  LiveImage& image = deltarelay::bench::live_image(state.range(0));
  Passes passes;
  const Batch* last = nullptr;
  for (auto _ : state) {
    last = &turns.next();
    benchmark::DoNotOptimize(passes.apply(*last, image));
    benchmark::ClobberMemory();
  }
  if (passes.failed()) state.SkipWithError("a block did not decode to its target");
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
