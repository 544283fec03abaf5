#include "relay/store/image_shape.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "codec/digest.hpp"
#include "codec/input_file.hpp"
#include "codec/limits.hpp"

namespace deltarelay::relay {
namespace {

constexpr std::size_t digest_bytes = sizeof(codec::Digest);
constexpr std::uint64_t shape_bytes_max = 2 * codec::gib;

codec::Checked<std::vector<std::byte>> read_range(const std::filesystem::path& path, std::uint64_t bytes,
                                                  std::uint64_t bytes_max) {
  auto file = codec::InputFile::open(path);
  if (!file) return file.error();
  const std::uint64_t wanted = bytes == 0 ? file->identity().bytes : bytes;
  if (wanted > bytes_max)
    return codec::Failure{make_error_code(codec::errc::table_too_large), path.string(),
                          "the file is too large to travel"};
  std::vector<std::byte> content(wanted);
  if (auto read = file->read_at(0, content); !read) return read.error();
  if (auto same = file->check_unchanged(); !same) return same.error();
  return content;
}

enum class Found { whole, damaged, foreign };

Found look_at(const std::filesystem::path& path, const codec::ShardSkeleton& shard) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? Found::damaged : Found::foreign;
  if (!S_ISREG(status.st_mode)) return Found::foreign;
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  auto file = FileOps::real().open(path, OpenMode::read);
  if (!file) return Found::foreign;
  std::vector<std::byte> head(std::min<std::uint64_t>(bytes, shard.header.size()));
  auto read = FileOps::real().read_at(*file, 0, head);
  if (!read || *read != head.size() || !std::equal(head.begin(), head.end(), shard.header.begin()))
    return Found::foreign;
  return bytes < shard.file_bytes ? Found::damaged : Found::whole;
}

}  // namespace

codec::Checked<codec::LayoutPayload> describe_files(const codec::Checkpoint& checkpoint) {
  codec::LayoutPayload out;
  out.layout = checkpoint.layout()->encode();
  for (const codec::ShardFile& shard : checkpoint.shards()) {
    auto header = read_range(checkpoint.directory() / shard.name, shard.header_bytes, codec::table_payload_bytes_max);
    if (!header) return header.error();
    out.shards.push_back({shard.name, shard.identity.bytes, std::move(*header)});
  }
  std::ranges::sort(out.shards, {}, &codec::ShardSkeleton::name);
  if (checkpoint.has_index()) {
    auto index = read_range(checkpoint.directory() / codec::index_file_name, 0, codec::table_payload_bytes_max);
    if (!index) return index.error();
    out.index_json = std::move(*index);
  }
  return out;
}

StoreResult<void> save_shape(FileOps& ops, const std::filesystem::path& file, const codec::LayoutPayload& shape) {
  std::vector<std::byte> content = shape.encode();
  const codec::Digest digest = codec::digest_of(codec::Bytes(content));
  content.insert(content.end(), digest.bytes.begin(), digest.bytes.end());
  if (auto known = read_file(ops, file, shape_bytes_max); known && *known == content) return {};
  return replace_file(ops, file, content);
}

StoreResult<std::optional<codec::LayoutPayload>> load_shape(FileOps& ops, const std::filesystem::path& file) {
  auto content = read_file(ops, file, shape_bytes_max);
  if (!content) {
    if (content.error().code == boost::system::errc::no_such_file_or_directory)
      return std::optional<codec::LayoutPayload>();
    return content.error();
  }
  const StoreError corrupt{make_error_code(store_errc::corrupt), "read", file.string(), 0};
  if (content->size() < digest_bytes) return corrupt;
  const codec::Bytes body = codec::Bytes(*content).first(content->size() - digest_bytes);
  const codec::Digest digest = codec::digest_of(body);
  if (std::memcmp(digest.bytes.data(), content->data() + body.size(), digest_bytes) != 0) return corrupt;
  auto shape = codec::LayoutPayload::decode(body);
  if (!shape) return corrupt;
  return std::optional<codec::LayoutPayload>(std::move(*shape));
}

std::vector<std::string> damaged_files(const std::filesystem::path& directory, const codec::LayoutPayload& shape) {
  auto names = FileOps::real().list(directory);
  if (!names) return {};
  const auto present = [&](std::string_view name) { return std::ranges::binary_search(*names, name); };
  if (present(".deltarelay.creating")) return {};  // image_create.cpp: made again as a whole
  const bool only_ours =
      std::ranges::all_of(*names, [](const std::string& name) { return name == ".deltarelay.lock"; });
  if (only_ours) return {};
  std::vector<std::string> damaged;
  const std::string index_name(codec::index_file_name);
  const bool has_index = present(index_name);
  if (has_index) {
    auto index = read_file(FileOps::real(), directory / index_name, codec::table_payload_bytes_max);
    if (!index || *index != shape.index_json) return {};
  } else {
    if (!shape.index_json.empty()) damaged.push_back(index_name);
    // With an index what it does not list is nobody's; without one a shard of another name is another checkpoint.
    for (const std::string& name : *names)
      if (name.ends_with(".safetensors") &&
          std::ranges::find(shape.shards, name, &codec::ShardSkeleton::name) == shape.shards.end())
        return {};
  }
  for (const codec::ShardSkeleton& shard : shape.shards) {
    const Found found = look_at(directory / shard.name, shard);
    if (found == Found::foreign) return {};
    if (found == Found::damaged) damaged.push_back(shard.name);
  }
  std::ranges::sort(damaged);
  return damaged;
}

}  // namespace deltarelay::relay
