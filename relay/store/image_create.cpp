// Making an image out of nothing but the root's description of its files.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "relay/store/image.hpp"

namespace deltarelay::relay {
namespace {

// Present from the first file to the last: what lies beside it is an image that was never finished, and ours to
// overwrite.
constexpr const char* unfinished_name = ".deltarelay.creating";

// Engines run as other users: a host that was filled must be as readable as the root that filled it.
constexpr unsigned public_mode = 0644;

bool plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

StoreResult<void> make_shard(const std::filesystem::path& path, const codec::ShardSkeleton& shard) {
  auto& ops = FileOps::real();
  auto file = ops.open(path, OpenMode::create);
  if (!file) return file.error();
  if (::fchmod(file->descriptor(), public_mode) != 0) return system_error(errno, "set permissions of", path.string());
  if (auto done = ops.write_at(*file, 0, shard.header); !done) return done;
  if (const int error = ::posix_fallocate(file->descriptor(), 0, static_cast<off_t>(shard.file_bytes)); error != 0)
    return system_error(error, "reserve space for", path.string(), shard.file_bytes);
  return ops.sync(*file);
}

}  // namespace

StoreResult<void> Image::create(const std::filesystem::path& directory, const codec::LayoutPayload& layout) {
  auto& ops = FileOps::real();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return system_error(error.value(), "make directory", directory.string());
  auto names = ops.list(directory);
  if (!names) return names.error();
  bool unfinished = false;
  for (const auto& name : *names) unfinished = unfinished || name == unfinished_name;
  const bool only_lock = names->size() == 1 && names->front() == ".deltarelay.lock";
  if (!unfinished && !only_lock && !names->empty())
    return StoreError{make_error_code(store_errc::not_empty), "make image in", directory.string(), 0};
  for (const auto& shard : layout.shards)
    if (!plain_name(shard.name) || shard.header.empty() || shard.header.size() > shard.file_bytes)
      return StoreError{make_error_code(store_errc::corrupt), "make shard", (directory / shard.name).string(), 0};
  if (auto done = replace_file(ops, directory / unfinished_name, {}); !done) return done;
  for (const auto& shard : layout.shards)
    if (auto done = make_shard(directory / shard.name, shard); !done) return done;
  if (!layout.index_json.empty())
    if (auto done = replace_file(ops, directory / "model.safetensors.index.json", layout.index_json, public_mode);
        !done)
      return done;
  if (auto done = ops.sync_directory(directory); !done) return done;
  if (auto done = ops.remove(directory / unfinished_name); !done) return done;
  return ops.sync_directory(directory);
}

}  // namespace deltarelay::relay
