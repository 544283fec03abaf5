#include "codec/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "codec/checkpoint_index.hpp"
#include "codec/input_file.hpp"
#include "codec/safetensors.hpp"
#include "codec/utf8.hpp"

namespace deltarelay::codec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view shard_suffix = ".safetensors";
constexpr std::string_view own_prefix = "deltarelay.";
constexpr std::size_t named_in_message_max = 8;

Failure at(const fs::path& path, Failure failure) {
  failure.where = path.string();
  return failure;
}

/// "a", "b" and 3 more
std::string name_list(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < named_in_message_max; ++i) {
    if (i > 0) out += ", ";
    out += display_name(names[i]);
  }
  if (names.size() > named_in_message_max)
    out += " and " + std::to_string(names.size() - named_in_message_max) + " more";
  return out;
}

struct ReadHeader {
  ShardFile file;
  SafetensorsHeader header;
};

Checked<ReadHeader> read_header(const fs::path& path, errc absent) {
  auto file = InputFile::open(path, absent);
  if (!file) return file.error();
  const std::uint64_t file_bytes = file->identity().bytes;
  std::vector<std::byte> head(std::min<std::uint64_t>(file_bytes, safetensors_prefix_bytes));
  if (auto read = file->read_at(0, head); !read) return read.error();
  const auto header_bytes = safetensors_header_bytes(head, file_bytes);
  if (!header_bytes) return at(path, header_bytes.error());
  head.resize(*header_bytes);
  if (auto read = file->read_at(0, head); !read) return read.error();
  auto header = parse_safetensors_header(head, file_bytes);
  if (auto same = file->check_unchanged(); !same) return same.error();
  if (!header) return at(path, header.error());
  return ReadHeader{{path.filename().string(), *header_bytes, file->identity()}, std::move(*header)};
}

struct Listing {
  std::vector<std::string> shards, companions, unfit;
  bool index = false;
};

Checked<Listing> list_directory(const fs::path& directory) {
  std::error_code ec;
  Listing listing;
  fs::directory_iterator entries(directory, ec);
  for (; !ec && entries != fs::directory_iterator{}; entries.increment(ec)) {
    const std::string name = entries->path().filename().string();
    if (name == index_file_name) {
      listing.index = true;
      continue;
    }
    if (name.starts_with('.') || name.starts_with(own_prefix)) continue;
    if (name.ends_with(shard_suffix)) {
      listing.shards.push_back(name);
      continue;
    }
    std::error_code no_entry;
    if (!fs::is_regular_file(entries->status(no_entry)) || no_entry) continue;
    const std::uint64_t bytes = entries->file_size(no_entry);
    const bool fits = !no_entry && bytes <= file_payload_bytes_max && companion_name_valid(name);
    (fits ? listing.companions : listing.unfit).push_back(name);
  }
  if (ec) return Failure{errc::directory_unreadable, directory.string(), ec.message()};
  if (listing.companions.size() > companion_count_max)
    return Failure{errc::too_many_tensors, directory.string(),
                   std::to_string(listing.companions.size()) + " files beside the shards"};
  std::ranges::sort(listing.shards);
  std::ranges::sort(listing.companions);
  std::ranges::sort(listing.unfit);
  return listing;
}

}  // namespace

bool companion_name_valid(std::string_view name) noexcept {
  if (name.empty() || name.size() > 255 || name.starts_with('.') || name.starts_with(own_prefix)) return false;
  if (name.ends_with(shard_suffix) || name == index_file_name || name.find('/') != name.npos) return false;
  while (!name.empty()) {
    const std::size_t length = utf8_sequence_bytes(name);
    if (length == 0 || static_cast<unsigned char>(name.front()) < 0x20 || name.front() == '\x7f') return false;
    name.remove_prefix(length);
  }
  return true;
}

/// Builds a Checkpoint shard by shard.
class CheckpointReader {
 public:
  Checked<Checkpoint> directory(const fs::path& path, std::uint32_t block_bytes) {
    result_.directory_ = path;
    auto listing = list_directory(path);
    if (!listing) return listing.error();
    result_.companions_ = std::move(listing->companions);
    result_.ignored_ = std::move(listing->unfit);
    Checked<void> read = listing->index ? by_index(listing->shards) : only_shard(listing->shards);
    if (!read) return read.error();
    return finish(block_bytes);
  }

  Checked<Checkpoint> file(const fs::path& path, std::uint32_t block_bytes) {
    result_.directory_ = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (auto read = whole_shard(path); !read) return read.error();
    return finish(block_bytes);
  }

 private:
  struct Placed {
    TensorSpec spec;
    TensorPlace place;
  };

  Checked<void> only_shard(const std::vector<std::string>& shards) {
    if (shards.empty()) return Failure{errc::no_checkpoint, result_.directory_.string(), {}};
    if (shards.size() > 1)
      return Failure{errc::shards_without_index, result_.directory_.string(),
                     name_list(shards) + ", and no " + std::string(index_file_name)};
    return whole_shard(result_.directory_ / shards.front());
  }

  Checked<void> whole_shard(const fs::path& path) {
    auto read = read_header(path, errc::io_error);
    if (!read) return read.error();
    for (SafetensorsEntry& entry : read->header.tensors) place(std::move(entry), *read);
    result_.shards_.push_back(std::move(read->file));
    return {};
  }

  Checked<void> by_index(const std::vector<std::string>& present) {
    const fs::path path = result_.directory_ / index_file_name;
    auto index = read_index(path);
    if (!index) return index.error();
    std::vector<std::string> missing;
    std::ranges::set_difference(index->shards, present, std::back_inserter(missing));
    if (!missing.empty()) return Failure{errc::shard_missing, path.string(), name_list(missing)};
    for (const std::string& name : present)
      if (!std::ranges::binary_search(index->shards, name)) result_.ignored_.push_back(name);
    std::vector<std::vector<std::string>> wanted(index->shards.size());
    for (const auto& [tensor, shard] : index->map) wanted[shard].push_back(tensor);
    for (std::uint32_t s = 0; s < index->shards.size(); ++s)
      if (auto read = assigned_part(*index, s, std::move(wanted[s])); !read) return read.error();
    return {};
  }

  Checked<CheckpointIndex> read_index(const fs::path& path) {
    auto file = InputFile::open(path);
    if (!file) return file.error();
    const std::uint64_t bytes = file->identity().bytes;
    if (bytes > index_json_bytes_max)
      return Failure{errc::index_invalid, path.string(),
                     std::to_string(bytes) + " bytes, limit " + std::to_string(index_json_bytes_max)};
    std::string text(bytes, '\0');
    if (auto read = file->read_at(0, std::as_writable_bytes(std::span{text})); !read) return read.error();
    if (auto same = file->check_unchanged(); !same) return same.error();
    result_.index_ = file->identity();
    auto index = parse_checkpoint_index(text);
    if (!index) return at(path, index.error());
    return index;
  }

  /// Takes from one shard what the index gives to it; `wanted` is sorted and is all of it.
  Checked<void> assigned_part(const CheckpointIndex& index, std::uint32_t shard, std::vector<std::string> wanted) {
    const fs::path path = result_.directory_ / index.shards[shard];
    auto read = read_header(path, errc::shard_missing);
    if (!read) return read.error();
    std::vector<std::string> found;
    for (SafetensorsEntry& entry : read->header.tensors) {
      const auto assigned = index.map.find(entry.spec.name);
      if (assigned == index.map.end())
        return Failure{errc::tensor_not_in_index, path.string(), display_name(entry.spec.name)};
      if (assigned->second != shard) {
        result_.ignored_.push_back(index.shards[shard] + ": " + display_name(entry.spec.name) +
                                   ", the index takes it from " + index.shards[assigned->second]);
        continue;
      }
      found.push_back(entry.spec.name);
      place(std::move(entry), *read);
    }
    std::ranges::sort(found);
    std::vector<std::string> lacking;
    std::ranges::set_difference(wanted, found, std::back_inserter(lacking));
    if (!lacking.empty()) return Failure{errc::tensor_missing_in_shard, path.string(), name_list(lacking)};
    result_.shards_.push_back(std::move(read->file));
    return {};
  }

  /// REQUIRES that the shard is pushed to shards_ next.
  void place(SafetensorsEntry entry, const ReadHeader& shard) {
    const auto place = static_cast<std::uint32_t>(result_.shards_.size());
    placed_.push_back({std::move(entry.spec), {place, shard.header.header_bytes + entry.begin}});
  }

  Checked<Checkpoint> finish(std::uint32_t block_bytes) {
    std::ranges::sort(placed_, {}, [](const Placed& p) -> const std::string& { return p.spec.name; });
    std::vector<TensorSpec> tensors;
    tensors.reserve(placed_.size());
    for (Placed& placed : placed_) {
      tensors.push_back(std::move(placed.spec));
      result_.places_.push_back(placed.place);
    }
    auto layout = Layout::make(std::move(tensors), block_bytes);
    if (!layout) return Failure{layout.error(), result_.directory_.string(), {}};
    result_.layout_ = std::make_shared<const Layout>(std::move(*layout));
    return std::move(result_);
  }

  Checkpoint result_;
  std::vector<Placed> placed_;
};

Checked<Checkpoint> Checkpoint::open(const fs::path& path, std::uint32_t block_bytes) {
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status))
    return Failure{errc::directory_unreadable, path.string(), ec ? ec.message() : std::string("it does not exist")};
  if (fs::is_directory(status)) return CheckpointReader{}.directory(path, block_bytes);
  return CheckpointReader{}.file(path, block_bytes);
}

}  // namespace deltarelay::codec
