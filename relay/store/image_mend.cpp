// Making files of an image again that were cut short or taken away: whole in size and header, zeros where weights were.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "relay/store/engine_lock.hpp"
#include "relay/store/image.hpp"

namespace deltarelay::relay {
namespace {

constexpr unsigned public_mode = 0644;  // as image_create.cpp: engines run as other users

StoreResult<void> mend_shard(const std::filesystem::path& path, const codec::ShardSkeleton& shard) {
  auto& ops = FileOps::real();
  // Not emptied: what is left of it need not travel again.
  const File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, public_mode), path);
  if (file.descriptor() < 0) return system_error(errno, "open", path.string());
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return system_error(errno, "stat", path.string());
  if (status.st_nlink > 1) return StoreError{make_error_code(store_errc::hard_linked), "mend", path.string(), 0};
  if (status.st_size == 0 && ::fchmod(file.descriptor(), public_mode) != 0)
    return system_error(errno, "set permissions of", path.string());
  // The header first: a file that has its size is taken for whole.
  if (auto done = ops.write_at(file, 0, shard.header); !done) return done;
  if (const int error = ::posix_fallocate(file.descriptor(), 0, static_cast<off_t>(shard.file_bytes)); error != 0)
    return system_error(error, "reserve space for", path.string(), shard.file_bytes);
  return ops.sync(file);
}

}  // namespace

StoreResult<void> Image::mend(const std::filesystem::path& directory, const codec::LayoutPayload& shape,
                              const std::vector<std::string>& names, const ImageMarker& marker) {
  auto engines = hold_engines(directory);
  if (!engines) return engines.error();
  if (!*engines) return StoreError{make_error_code(store_errc::engine_reads), "mend", directory.string(), 0};
  // Before the first file has its size again: no engine may take zeros for weights.
  if (auto marked = relay::write_marker(directory, marker); !marked) return marked;
  for (const codec::ShardSkeleton& shard : shape.shards) {
    if (std::ranges::find(names, shard.name) == names.end()) continue;
    if (auto done = mend_shard(directory / shard.name, shard); !done) return done;
  }
  const std::string index(codec::index_file_name);
  if (std::ranges::find(names, index) != names.end())
    if (auto done = replace_file(FileOps::real(), directory / index, shape.index_json, public_mode); !done) return done;
  return FileOps::real().sync_directory(directory);
}

}  // namespace deltarelay::relay
