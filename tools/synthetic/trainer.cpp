#include "tools/synthetic/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "codec/input_file.hpp"
#include "tools/synthetic/chunks.hpp"
#include "tools/synthetic/shard_writer.hpp"
#include "tools/synthetic/staged_output.hpp"
#include "tools/synthetic/step_kernel.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::Checked;
using codec::errc;
using codec::Failure;
using codec::TensorIndex;

/// The source's own files, tensors in the order of their bytes.
std::vector<ShardPlan> plan_of(const codec::Checkpoint& checkpoint) {
  std::vector<std::uint32_t> order(checkpoint.places().size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return checkpoint.places()[i].file_offset; });
  std::vector<ShardPlan> plan;
  for (const codec::ShardFile& shard : checkpoint.shards()) plan.push_back({shard.name, {}});
  for (const std::uint32_t i : order)
    plan[checkpoint.places()[i].shard].tensors.push_back(checkpoint.layout()->tensors()[i]);
  return plan;
}

Checked<std::vector<ShardPlan>> plan_for(const codec::Checkpoint& from, std::optional<std::size_t> shards) {
  if (!shards) return plan_of(from);
  std::vector<codec::TensorSpec> tensors;
  for (const ShardPlan& shard : plan_of(from)) std::ranges::copy(shard.tensors, std::back_inserter(tensors));
  if (*shards < 1 || *shards > tensors.size())
    return Failure{make_error_code(boost::system::errc::invalid_argument), "--shards",
                   fmt::format("{} shards for {} tensors", *shards, tensors.size())};
  return plan_shards(tensors, *shards);
}

/// Everything that the workers of one step share.
struct Step {
  const TrainingSource& source;
  const StepOptions& options;
  float size;
  const ShardWriter& checkpoint;
  const ShardWriter* masters;  ///< null: not kept
  const MastersPlan& places;
};

Checked<void> step_chunk(const Step& step, const Chunk& chunk, StepBuffers& buffers, StepCounts& counts) {
  const codec::TensorSpec& tensor = step.checkpoint.shards()[chunk.shard].tensors[chunk.tensor];
  const std::uint64_t width = codec::element_width(tensor.dtype);
  const TensorIndex index{static_cast<std::uint32_t>(step.source.layout().find(tensor.name))};
  const codec::Bytes stored = step.source.stored(index);
  if (!trainable(tensor.dtype)) {
    counts.elements += chunk.count;
    return step.checkpoint.write(
        chunk.shard, chunk.tensor, chunk.first * width,
        stored.subspan(static_cast<std::size_t>(chunk.first * width), static_cast<std::size_t>(chunk.count * width)));
  }
  const bool consistent = with_format(tensor.dtype, [&]<class Format>(Format) {
    const MasterReader<Format> reader(stored, step.source.masters(index), step.options.seed, tensor.name);
    return step_run(reader, update_stream(step.options.seed, tensor.name), step.size, chunk.first,
                    static_cast<std::size_t>(chunk.count), buffers, counts);
  });
  if (!consistent)
    return Failure{errc::base_digest_mismatch, masters_path(step.source.map().checkpoint().directory()).string(),
                   "the masters of " + codec::display_name(tensor.name) +
                       " do not round to the stored values: they belong to another checkpoint"};
  if (auto wrote = step.checkpoint.write(chunk.shard, chunk.tensor, chunk.first * width, buffers.stored); !wrote)
    return wrote;
  const MastersPlan::Place place = step.places.places[chunk.shard][chunk.tensor];
  if (step.masters == nullptr || place.shard == no_master) return {};
  return step.masters->write(place.shard, place.tensor, chunk.first * sizeof(float), buffers.masters);
}

Checked<StepCounts> step_tensors(const Step& step) {
  const std::vector<Chunk> chunks = chunks_of(step.checkpoint.shards());
  const unsigned threads = step.options.threads;
  std::vector<StepBuffers> buffers(threads);
  std::vector<StepCounts> counts(threads);
  const Job step_one = [&](std::size_t job, unsigned worker) {
    return step_chunk(step, chunks[job], buffers[worker], counts[worker]);
  };
  auto done = run_jobs(chunks.size(), {threads, step.options.stop}, step_one);
  if (!done) return done.error();
  StepCounts total;
  for (const StepCounts& one : counts) total += one;
  return total;
}

Checked<void> copy_companions(const codec::Checkpoint& from, const ShardWriter& to) {
  for (const std::string& name : from.companions()) {
    auto file = codec::InputFile::open(from.directory() / name);
    if (!file) return file.error();
    std::vector<std::byte> content(static_cast<std::size_t>(file->identity().bytes));
    if (auto read = file->read_at(0, content); !read) return read;
    if (auto wrote = to.add_file(name, content); !wrote) return wrote;
  }
  return {};
}

}  // namespace

StepCounts& StepCounts::operator+=(const StepCounts& other) {
  elements += other.elements;
  changed += other.changed;
  narrow_changed += other.narrow_changed;
  for (std::size_t i = 0; i < by_distance.size(); ++i) by_distance[i] += other.by_distance[i];
  for (std::size_t i = 0; i < exponent_elements.size(); ++i) {
    exponent_elements[i] += other.exponent_elements[i];
    exponent_changed[i] += other.exponent_changed[i];
  }
  return *this;
}

Checked<StepReport> step_checkpoint(const std::filesystem::path& from, const std::filesystem::path& directory,
                                    const StepOptions& options) {
  auto source = TrainingSource::open(from);
  if (!source) return source.error();
  const codec::Checkpoint& old = source->map().checkpoint();
  auto plan = plan_for(old, options.shards);
  if (!plan) return plan.error();
  const MastersPlan places(*plan);
  const bool keep = options.keep_masters && !places.shards.empty();
  auto output = StagedOutput::create(directory, keep);
  if (!output) return output.error();
  auto size = find_step_size(*source, options.change, options.seed, {options.threads, options.stop});
  if (!size) return size.error();

  auto checkpoint = ShardWriter::create(output->checkpoint(), *plan);
  if (!checkpoint) return checkpoint.error();
  std::optional<ShardWriter> masters;
  if (keep) {
    auto made = ShardWriter::create(output->masters(), places.shards);
    if (!made) return made.error();
    masters = std::move(*made);
  }
  auto counts = step_tensors({*source, options, size->size, *checkpoint, masters ? &*masters : nullptr, places});
  if (!counts) return counts.error();
  if (auto copied = copy_companions(old, *checkpoint); !copied) return copied.error();
  if (plan->size() > 1 || (old.has_index() && !options.shards))
    if (auto wrote = checkpoint->write_index(); !wrote) return wrote.error();
  if (masters)
    if (auto wrote = masters->write_index(); !wrote) return wrote.error();
  if (auto same = source->check_unchanged(); !same) return same.error();
  if (auto placed = output->commit(); !placed) return placed.error();
  StepReport report{*counts, size->size, size->sampled, source->masters_kept(), plan->size()};
  report.bytes = source->layout().total_bytes();
  report.cleared = output->cleared();
  return report;
}

}  // namespace deltarelay::synthetic
