#include "tools/bench/trained_pair.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "codec/limits.hpp"
#include "tools/synthetic/generator.hpp"
#include "tools/synthetic/trainer.hpp"

namespace deltarelay::bench {
namespace {

namespace fs = std::filesystem;

template <class T>
T value_of(codec::Checked<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(*result);
}

codec::CheckpointMap open_map(const fs::path& path) {
  return value_of(codec::CheckpointMap::open(value_of(codec::Checkpoint::open(path))));
}

/// So that no page fault falls into a measurement.
void touch(const codec::CheckpointMap& map) {
  unsigned sum = 0;
  for (std::uint32_t i = 0; i < map.layout().tensors().size(); ++i) {
    const codec::Bytes bytes = map.tensor(codec::TensorIndex{i});
    for (std::size_t at = 0; at < bytes.size(); at += 4096) sum += std::to_integer<unsigned>(bytes[at]);
  }
  [[maybe_unused]] const volatile unsigned kept = sum;  // the reads are the purpose
}

}  // namespace

TrainedPair::TrainedPair(codec::CheckpointMap base, codec::CheckpointMap next)
    : base_(std::move(base)), next_(std::move(next)) {
  touch(base_);
  touch(next_);
  std::size_t offset = 0;
  for (std::uint64_t i = 0; i < layout().block_count(); ++i) {
    const codec::BlockId id = layout().block_at(i);
    if (batches_.empty() || batches_.back().bytes >= 16 * codec::mib ||
        batches_.back().blocks.size() == codec::frame_blocks_max)
      batches_.emplace_back();
    Batch& batch = batches_.back();
    batch.offsets.push_back(offset);
    batch.blocks.push_back({id, layout().tensor(id.tensor).dtype, base_.block(id), next_.block(id)});
    batch.bytes += layout().size_of(id);
    offset += layout().size_of(id);
  }
  codec::FrameEncoder encoder;
  for (Batch& batch : batches_) {
    encoder.encode(batch.blocks, batch.frames);
    std::vector<codec::BlockInput> turned = batch.blocks;
    for (codec::BlockInput& block : turned) std::swap(block.base, block.next);
    encoder.encode(turned, batch.back);
  }
}

double TrainedPair::changed_percent() const {
  std::uint64_t changed = 0, elements = 0;
  for (const Batch& batch : batches_)
    for (const codec::EncodedFrame& frame : batch.frames) changed += frame.stats.changed_elements;
  for (const codec::TensorSpec& tensor : layout().tensors())
    elements += tensor.bytes / codec::element_width(tensor.dtype);
  return 100.0 * static_cast<double>(changed) / static_cast<double>(elements);
}

double TrainedPair::payload_percent() const {
  std::uint64_t payload = 0;
  for (const Batch& batch : batches_)
    for (const codec::EncodedFrame& frame : batch.frames) payload += frame.payload.size();
  return 100.0 * static_cast<double>(payload) / static_cast<double>(bytes());
}

Workshop::Workshop(const WorkshopOptions& options) : options_(options) {
  std::string pattern = (fs::temp_directory_path() / "deltarelay-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make a directory like " + pattern);
  path_ = pattern;
  try {
    value_of(synthetic::make_checkpoint(path_ / "base",
                                        {.bytes = options.bytes, .seed = options.seed, .threads = options.threads}));
  } catch (...) {
    std::error_code ignored;  // no destructor runs for what was not constructed
    fs::remove_all(path_, ignored);
    throw;
  }
}

Workshop::~Workshop() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

TrainedPair Workshop::pair(double change) {
  const fs::path step = path_ / ("step" + std::to_string(++steps_));
  value_of(synthetic::step_checkpoint(
      path_ / "base", step,
      {.change = change, .seed = options_.seed + 1, .threads = options_.threads, .keep_masters = false}));
  return TrainedPair(open_map(path_ / "base"), open_map(step));
}

}  // namespace deltarelay::bench
