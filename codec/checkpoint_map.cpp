#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "codec/checkpoint.hpp"
#include "codec/input_file.hpp"

namespace deltarelay::codec {

/// One shard in memory. The descriptor is closed once it is mapped: thousands of shards must not eat the descriptors.
struct CheckpointMap::Mapping {
  void* data = MAP_FAILED;
  std::size_t bytes = 0;

  Mapping(void* where, std::size_t length) : data(where), bytes(length) {}
  Mapping(Mapping&& other) noexcept : data(std::exchange(other.data, MAP_FAILED)), bytes(other.bytes) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data, other.data);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Mapping() {
    if (data != MAP_FAILED) ::munmap(data, bytes);
  }
};

CheckpointMap::CheckpointMap(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
CheckpointMap::CheckpointMap(CheckpointMap&&) noexcept = default;
CheckpointMap& CheckpointMap::operator=(CheckpointMap&&) noexcept = default;
CheckpointMap::~CheckpointMap() = default;

Checked<CheckpointMap> CheckpointMap::open(Checkpoint checkpoint) {
  CheckpointMap map{std::move(checkpoint)};
  map.mappings_.reserve(map.checkpoint_.shards().size());
  for (const ShardFile& shard : map.checkpoint_.shards()) {
    const std::filesystem::path path = map.checkpoint_.directory() / shard.name;
    auto file = InputFile::open(path, errc::file_changed);
    if (!file) return file.error();
    if (file->identity() != shard.identity) return Failure{errc::file_changed, path.string(), {}};
    const auto bytes = static_cast<std::size_t>(shard.identity.bytes);
    void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file->descriptor(), 0);
    if (data == MAP_FAILED)
      return Failure{errc::io_error, path.string(), "mmap: " + std::generic_category().message(errno)};
    map.mappings_.emplace_back(data, bytes);
  }
  return map;
}

Bytes CheckpointMap::tensor(TensorIndex index) const {
  const TensorPlace& place = checkpoint_.places().at(raw(index));
  const Mapping& mapping = mappings_.at(place.shard);
  const Bytes shard{static_cast<const std::byte*>(mapping.data), mapping.bytes};
  return shard.subspan(static_cast<std::size_t>(place.file_offset),
                       static_cast<std::size_t>(layout().tensor(index).bytes));
}

Bytes CheckpointMap::block(BlockId id) const {
  return tensor(id.tensor).subspan(static_cast<std::size_t>(layout().offset_of(id)), layout().size_of(id));
}

Checked<void> CheckpointMap::check_unchanged() const {
  const std::filesystem::path& directory = checkpoint_.directory();
  for (const ShardFile& shard : checkpoint_.shards())
    if (auto same = check_same_file(directory / shard.name, shard.identity); !same) return same.error();
  if (const auto& index = checkpoint_.index_identity())
    if (auto same = check_same_file(directory / index_file_name, *index); !same) return same.error();
  return {};
}

}  // namespace deltarelay::codec
