#include "tools/relayctl/checkpoint_pair.hpp"

#include <string>
#include <vector>

#include "relay/store/sigbus_guard.hpp"
#include "tools/relayctl/failures.hpp"

namespace deltarelay::relayctl {
namespace {

using codec::Checked;

constexpr std::size_t differences_named_max = 5;

codec::BlockReader guarded_reader(const codec::CheckpointMap& map) {
  return [&map](codec::BlockId id, codec::MutableBytes scratch) -> codec::Result<codec::Bytes> {
    const codec::Bytes from = map.block(id);
    const codec::MutableBytes to = scratch.first(from.size());
    if (!relay::guarded_copy(to, from)) return codec::errc::file_changed;
    return codec::Bytes(to);
  };
}

Checked<codec::CheckpointMap> open_map(const std::filesystem::path& path, std::uint32_t block_bytes) {
  auto checkpoint = codec::Checkpoint::open(path, block_bytes);
  if (!checkpoint) return checkpoint.error();
  return codec::CheckpointMap::open(std::move(*checkpoint));
}

}  // namespace

std::unique_ptr<CheckpointPair> CheckpointPair::open(const Context& context, const std::filesystem::path& base,
                                                     const std::filesystem::path& next, std::uint32_t block_bytes,
                                                     int& exit_code) {
  relay::install_sigbus_guard();
  auto base_map = open_map(base, block_bytes);
  auto next_map = base_map ? open_map(next, block_bytes) : base_map.error();
  if (!next_map) {
    exit_code = fail(context, "cannot read the checkpoint", next_map.error());
    return nullptr;
  }
  if (base_map->layout().digest() != next_map->layout().digest()) {
    std::string why;
    for (const auto& difference : describe_difference(base_map->layout(), next_map->layout(), differences_named_max))
      why += (why.empty() ? "" : "; ") + difference;
    exit_code = context.fail(ExitCode::invalid, base.string() + " and " + next.string() + " have different tensors",
                             why, "two checkpoints of one model; a refit never changes names, dtypes or shapes");
    return nullptr;
  }
  for (const codec::CheckpointMap* map : {&*base_map, &*next_map})
    for (const std::string& ignored : map->checkpoint().ignored_files())
      context.note("warning: " + map->checkpoint().directory().string() + ": ignored: " + ignored);
  return std::unique_ptr<CheckpointPair>(new CheckpointPair(std::move(*base_map), std::move(*next_map)));
}

codec::BlockReader CheckpointPair::base_reader() const {
  return guarded_reader(base_);
}
codec::BlockReader CheckpointPair::next_reader() const {
  return guarded_reader(next_);
}

Checked<void> CheckpointPair::check_unchanged() const {
  if (auto same = base_.check_unchanged(); !same) return same.error();
  return next_.check_unchanged();
}

}  // namespace deltarelay::relayctl
