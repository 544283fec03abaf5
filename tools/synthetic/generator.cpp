#include "tools/synthetic/generator.hpp"

#include <fmt/format.h>

#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/bytes.hpp"
#include "tools/synthetic/chunks.hpp"
#include "tools/synthetic/float_format.hpp"
#include "tools/synthetic/random.hpp"
#include "tools/synthetic/shard_writer.hpp"
#include "tools/synthetic/staged_output.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::Checked;
using codec::Failure;

struct Buffers {
  std::vector<std::byte> stored, masters;
};

void draw(const ModelTensor& tensor, const NumberStream& stream, const Chunk& chunk, Buffers& out) {
  out.masters.resize(static_cast<std::size_t>(chunk.count) * sizeof(float));
  with_format(tensor.spec.dtype, [&]<class Format>(Format) {
    using Stored = typename Format::Bits;
    out.stored.resize(static_cast<std::size_t>(chunk.count) * sizeof(Stored));
    for (std::uint64_t i = 0; i < chunk.count; ++i) {
      const float master = tensor.mean + tensor.spread * stream.normal(chunk.first + i);
      codec::store_le(out.masters.data() + i * sizeof(float), std::bit_cast<std::uint32_t>(master));
      codec::store_le(out.stored.data() + i * sizeof(Stored), Format::round(master));
    }
  });
}

struct Writers {
  const ShardWriter& checkpoint;
  const ShardWriter* masters;  ///< null: not kept
  const MastersPlan& places;
};

Checked<void> write_chunk(const Writers& to, const Chunk& chunk, const Buffers& buffers, std::uint64_t width) {
  if (auto wrote = to.checkpoint.write(chunk.shard, chunk.tensor, chunk.first * width, buffers.stored); !wrote)
    return wrote;
  const MastersPlan::Place place = to.places.places[chunk.shard][chunk.tensor];
  if (to.masters == nullptr || place.shard == no_master) return {};
  return to.masters->write(place.shard, place.tensor, chunk.first * sizeof(float), buffers.masters);
}

Checked<void> write_tensors(const Model& model, const Writers& to, const MakeOptions& options) {
  std::map<std::string_view, const ModelTensor*> by_name;
  for (const ModelTensor& tensor : model.tensors) by_name.emplace(tensor.spec.name, &tensor);
  const std::vector<Chunk> chunks = chunks_of(to.checkpoint.shards());
  std::vector<Buffers> buffers(options.threads);
  const Job draw_and_write = [&](std::size_t job, unsigned worker) -> Checked<void> {
    const Chunk& chunk = chunks[job];
    const ModelTensor& tensor = *by_name.at(to.checkpoint.shards()[chunk.shard].tensors[chunk.tensor].name);
    draw(tensor, NumberStream(options.seed, "weights", tensor.spec.name), chunk, buffers[worker]);
    return write_chunk(to, chunk, buffers[worker], codec::element_width(tensor.spec.dtype));
  };
  return run_jobs(chunks.size(), {options.threads, options.stop}, draw_and_write);
}

}  // namespace

Checked<MakeReport> make_checkpoint(const std::filesystem::path& directory, const MakeOptions& options) {
  MakeReport report{design_model(options.bytes, options.dtype), 0, 0, {}};
  std::vector<codec::TensorSpec> specs;
  for (const ModelTensor& tensor : report.model.tensors) specs.push_back(tensor.spec);
  report.shards = options.shards.value_or(default_shards(report.model.bytes, specs.size()));
  if (report.shards < 1 || report.shards > specs.size())
    return Failure{make_error_code(boost::system::errc::invalid_argument), "--shards",
                   fmt::format("{} shards for {} tensors", report.shards, specs.size())};

  const std::vector<ShardPlan> plan = plan_shards(specs, report.shards);
  const MastersPlan places(plan);
  const bool keep = options.keep_masters && !places.shards.empty();
  auto output = StagedOutput::create(directory, keep);
  if (!output) return output.error();
  report.cleared = output->cleared();
  auto checkpoint = ShardWriter::create(output->checkpoint(), plan);
  if (!checkpoint) return checkpoint.error();
  std::optional<ShardWriter> masters;
  if (keep) {
    auto made = ShardWriter::create(output->masters(), places.shards);
    if (!made) return made.error();
    masters = std::move(*made);
    report.masters_bytes = places.bytes();
  }
  const Writers to{*checkpoint, masters ? &*masters : nullptr, places};
  if (auto wrote = write_tensors(report.model, to, options); !wrote) return wrote.error();

  const std::string config = config_json(report.model);
  if (auto wrote = checkpoint->add_file("config.json", std::as_bytes(std::span{config})); !wrote) return wrote.error();
  if (report.shards > 1)
    if (auto wrote = checkpoint->write_index(); !wrote) return wrote.error();
  if (masters)
    if (auto wrote = masters->write_index(); !wrote) return wrote.error();
  if (auto placed = output->commit(); !placed) return placed.error();
  return report;
}

}  // namespace deltarelay::synthetic
