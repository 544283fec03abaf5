#include "tools/bench/trained_pair.hpp"

#include <benchmark/benchmark.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
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

/// Where the checkpoints are while the program runs.
class Workshop {
 public:
  Workshop() {
    std::string pattern = (fs::temp_directory_path() / "deltarelay-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), "cannot make a directory like " + pattern);
    path_ = pattern;
    value_of(synthetic::make_checkpoint(base(), {.bytes = model_bytes, .seed = 1, .threads = 2}));
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path base() const { return path_ / "base"; }
  [[nodiscard]] fs::path step(std::int64_t percent) const {
    fs::path to = path_ / ("step" + std::to_string(percent));
    value_of(synthetic::step_checkpoint(
        base(), to, {.change = static_cast<double>(percent) / 100, .seed = 2, .threads = 2, .keep_masters = false}));
    return to;
  }

 private:
  fs::path path_;
};

/// So that no page fault falls into a measurement.
void touch(const codec::CheckpointMap& map) {
  unsigned sum = 0;
  for (std::uint32_t i = 0; i < map.layout().tensors().size(); ++i) {
    const codec::Bytes bytes = map.tensor(codec::TensorIndex{i});
    for (std::size_t at = 0; at < bytes.size(); at += 4096) sum += std::to_integer<unsigned>(bytes[at]);
  }
  benchmark::DoNotOptimize(sum);
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

const TrainedPair& TrainedPair::changed(std::int64_t percent) {
  static const Workshop workshop;
  static std::map<std::int64_t, std::unique_ptr<const TrainedPair>> made;
  auto& slot = made[percent];
  if (!slot) slot.reset(new TrainedPair(open_map(workshop.base()), open_map(workshop.step(percent))));
  return *slot;
}

codec::MutableBytes TrainedPair::image() {
  static std::vector<std::byte> memory(static_cast<std::size_t>(changed(3).bytes()));
  return memory;
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

}  // namespace deltarelay::bench
