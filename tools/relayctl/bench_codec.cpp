#include "tools/relayctl/bench_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

#include "codec/kernels/class_scan.hpp"
#include "codec/kernels/cpu.hpp"
#include "codec/record.hpp"
#include "codec/refit_encoder.hpp"
#include "tools/bench/pass_rates.hpp"
#include "tools/relayctl/change_stats.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;
using bench::Pass;

struct Measured {
  double change = 0;  ///< as asked for
  std::uint64_t dense_bytes = 0, elements = 0, changed = 0, wire_bytes = 0;
  ChangeBounds bounds;
  bench::PassRates rates;
};

/// What publishing the pair would send: frames as the root cuts them, with the headers of their records.
std::uint64_t wire_bytes(const bench::TrainedPair& pair) {
  const codec::RefitInput input{pair.layout(), codec::reader_of(pair.base()), codec::reader_of(pair.next()), {}};
  codec::RefitControl control;
  const auto encoded = codec::encode_refit(input, {}, control, [](codec::EncodedFrame&&) {});
  if (!encoded) throw std::runtime_error(encoded.error().text());
  return control.payload_bytes + encoded->frames * codec::record_header_bytes;
}

Measured measure(const bench::TrainedPair& pair, double change, const BenchCodecOptions& options) {
  Measured out;
  out.change = change;
  out.dense_bytes = pair.bytes();
  ChangeStats changes;
  for (const bench::Batch& batch : pair.batches())
    for (const codec::BlockInput& block : batch.blocks) changes.add_block(block.dtype, block.base, block.next);
  out.elements = changes.elements();
  out.changed = changes.changed();
  out.bounds = changes.bounds();
  out.wire_bytes = wire_bytes(pair);
  out.rates = bench::measure_passes(pair, {.threads = options.threads, .seconds = options.seconds});
  return out;
}

const char* kernels_name() {
#if defined(__x86_64__)
  if (codec::kernels::class_kernels_avx512_run_here()) return "avx512";
#endif
  return codec::kernels::cpu_level() >= codec::kernels::CpuLevel::avx2 ? "avx2" : "portable";
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

json::object change_json(const Measured& measured) {
  json::object out;
  out["change_asked"] = measured.change;
  out["elements"] = measured.elements;
  out["changed_elements"] = measured.changed;
  out["dense_bytes"] = measured.dense_bytes;
  out["wire_bytes"] = measured.wire_bytes;
  out["order0_bound_bytes"] = std::ceil(measured.bounds.order0_bytes);
  out["given_exponent_bound_bytes"] = std::ceil(measured.bounds.given_exponent_bytes);
  out["first_sync_payload_bytes"] = measured.rates.dense_payload_bytes;
  out["rounds"] = measured.rates.rounds;
  json::array passes;
  for (std::size_t i = 0; i < bench::pass_count; ++i) {
    const auto pass = static_cast<Pass>(i);
    json::object row;
    row["name"] = bench::pass_name(pass);
    row["bytes_per_second_per_core"] = measured.rates.of(pass);
    row["of_compare"] = measured.rates.ratio(pass, Pass::compare);
    row["of_memcpy"] = measured.rates.ratio(pass, Pass::copy);
    passes.push_back(std::move(row));
  }
  out["passes"] = std::move(passes);
  return out;
}

const char* meaning(Pass pass) {
  switch (pass) {
    case Pass::compare:
      return "reads both checkpoints";
    case Pass::copy:
      return "copies one into memory that is there";
    case Pass::digest:
      return "XXH3-128 of every block";
    case Pass::scan:
      return "marks the elements that differ";
    case Pass::encode:
      return "scan, digests and code: a root's worker";
    case Pass::decode:
      return "into a slot, with the digest";
    case Pass::apply:
      return "decode, compare digests, copy into the image: a relay's worker";
    case Pass::encode_dense:
      return "against nothing, for first sync";
    case Pass::decode_dense:
      return "of that, with the digest";
  }
  return "";
}

std::string change_text(const Measured& measured) {
  const auto wire = static_cast<double>(measured.wire_bytes), dense = static_cast<double>(measured.dense_bytes);
  std::string out = fmt::format(
      "{} changed: {} of dense is sent, {:.3f} of the bound given the old exponent, {:.3f} of order 0; first sync {}\n",
      human_percent(100 * ratio(static_cast<double>(measured.changed), static_cast<double>(measured.elements)), 2),
      human_percent(100 * wire / dense, 3), ratio(wire, measured.bounds.given_exponent_bytes),
      ratio(wire, measured.bounds.order0_bytes),
      human_percent(100 * static_cast<double>(measured.rates.dense_payload_bytes) / dense, 1));
  Table table({{"pass"},
               {"per core", Align::right},
               {"/ compare", Align::right},
               {"/ memcpy", Align::right},
               {"what it does"}});
  for (std::size_t i = 0; i < bench::pass_count; ++i) {
    const auto pass = static_cast<Pass>(i);
    table.add({std::string(bench::pass_name(pass)), human_rate(measured.rates.of(pass)),
               fmt::format("{:.2f}", measured.rates.ratio(pass, Pass::compare)),
               fmt::format("{:.2f}", measured.rates.ratio(pass, Pass::copy)), meaning(pass)});
  }
  return out + table.text();
}

/// All pairs first: their files are gone before the long part begins, whatever ends it.
std::vector<bench::TrainedPair> make_pairs(const BenchCodecOptions& options) {
  bench::Workshop workshop({.bytes = options.bytes, .seed = options.seed, .threads = options.threads});
  std::vector<bench::TrainedPair> out;
  for (const double change : options.changes) out.push_back(workshop.pair(change));
  return out;
}

}  // namespace

int bench_codec(const Context& context, const BenchCodecOptions& options) {
  std::vector<Measured> all;
  try {
    context.note("makes checkpoints, then measures");
    const std::vector<bench::TrainedPair> pairs = make_pairs(options);
    if (const std::size_t batches = pairs.front().batches().size(); options.threads > batches)
      return context.fail(ExitCode::usage, fmt::format("cannot measure on {} threads", options.threads),
                          fmt::format("a checkpoint of {} has work for {}", human_bytes(options.bytes), batches),
                          "a larger --size, 16MiB for each thread");
    for (std::size_t i = 0; i < pairs.size(); ++i) all.push_back(measure(pairs[i], options.changes[i], options));
  } catch (const std::runtime_error& error) {
    return context.fail(ExitCode::failed, "cannot measure the codec", error.what(),
                        "TMPDIR on a disk with four times --size free; a smaller --size");
  }
  if (context.json()) {
    json::object out;
    out["schema"] = "deltarelay.bench-codec/1";
    out["seed"] = options.seed;
    out["threads"] = options.threads;
    out["kernels"] = kernels_name();
    json::array changes;
    for (const Measured& measured : all) changes.push_back(change_json(measured));
    out["changes"] = std::move(changes);
    context.print(json::serialize(out) + "\n");
    return to_int(ExitCode::ok);
  }
  std::string out = fmt::format(
      "synthetic BF16 checkpoint of {}, seed {}; {} {}, kernels {}; the best of at least {} rounds\n",
      human_bytes(all.front().dense_bytes), options.seed, options.threads, options.threads == 1 ? "thread" : "threads",
      kernels_name(), std::ranges::min(all, {}, [](const Measured& m) { return m.rates.rounds; }).rates.rounds);
  for (const Measured& measured : all) {
    out += '\n';
    out += change_text(measured);
  }
  context.print(out);
  return to_int(ExitCode::ok);
}

}  // namespace deltarelay::relayctl
