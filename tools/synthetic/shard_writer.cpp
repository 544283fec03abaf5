#include "tools/synthetic/shard_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cassert>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "codec/checkpoint.hpp"
#include "codec/limits.hpp"
#include "codec/safetensors.hpp"

namespace deltarelay::synthetic {
namespace {

namespace fs = std::filesystem;
using codec::Bytes;
using codec::Checked;
using codec::Failure;
using codec::TensorSpec;

Failure refused(const fs::path& path, std::string_view doing) {
  return {codec::error_code(errno, boost::system::generic_category()), path.string(), std::string(doing)};
}

/// A descriptor for as long as one call takes.
class OpenFile {
 public:
  OpenFile(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

Checked<void> write_all(const fs::path& path, int fd, std::uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return refused(path, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

std::uint64_t bytes_of(std::span<const TensorSpec> tensors) {
  std::uint64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.bytes;
  return sum;
}

}  // namespace

std::vector<ShardPlan> plan_shards(const std::vector<TensorSpec>& tensors, std::size_t count) {
  assert(count >= 1 && count <= tensors.size());
  std::vector<ShardPlan> shards(count);
  const std::uint64_t total = bytes_of(tensors);
  std::uint64_t placed = 0;
  std::size_t shard = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    shards[shard].tensors.push_back(tensors[i]);
    placed += tensors[i].bytes;
    const std::size_t left = tensors.size() - i - 1, open = count - shard - 1;
    const bool full = placed * count >= total * (shard + 1);  // at most 2^44 bytes times 2^17 shards
    if (open > 0 && (full || left == open)) ++shard;
  }
  for (std::size_t i = 0; i < count; ++i) {
    shards[i].name = count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count);
    std::ranges::stable_sort(shards[i].tensors, std::ranges::greater{},
                             [](const TensorSpec& tensor) { return codec::element_width(tensor.dtype); });
  }
  return shards;
}

std::size_t default_shards(std::uint64_t bytes, std::size_t tensors) {
  const auto wanted = static_cast<std::size_t>(std::max<std::uint64_t>(2, bytes / codec::gib));
  return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(tensors, 1));
}

ShardWriter::ShardWriter(fs::path directory, std::vector<ShardPlan> shards)
    : directory_(std::move(directory)), shards_(std::move(shards)) {}

Checked<ShardWriter> ShardWriter::create(fs::path directory, std::vector<ShardPlan> shards) {
  ShardWriter writer(std::move(directory), std::move(shards));
  for (const ShardPlan& shard : writer.shards_) {
    const fs::path path = writer.directory_ / shard.name;
    const std::vector<std::byte> header = codec::make_safetensors_header(shard.tensors);
    std::uint64_t end = header.size();
    std::vector<std::uint64_t>& offsets = writer.offsets_.emplace_back();
    for (const TensorSpec& tensor : shard.tensors) {
      offsets.push_back(end);
      end += tensor.bytes;
    }
    const OpenFile file(path, O_WRONLY | O_CREAT | O_EXCL);
    if (file.get() < 0) return refused(path, "create");
    if (auto wrote = write_all(path, file.get(), 0, header); !wrote) return wrote.error();
    if (::ftruncate(file.get(), static_cast<off_t>(end)) != 0) return refused(path, "set the size");
  }
  return writer;
}

Checked<void> ShardWriter::write(std::size_t shard, std::size_t tensor, std::uint64_t offset, Bytes bytes) const {
  assert(offset + bytes.size() <= shards_.at(shard).tensors.at(tensor).bytes);
  const fs::path path = directory_ / shards_[shard].name;
  const OpenFile file(path, O_WRONLY);
  if (file.get() < 0) return refused(path, "open");
  return write_all(path, file.get(), offsets_[shard][tensor] + offset, bytes);
}

Checked<void> ShardWriter::add_file(std::string_view name, Bytes content) const {
  const fs::path path = directory_ / name;
  const OpenFile file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file.get() < 0) return refused(path, "create");
  return write_all(path, file.get(), 0, content);
}

Checked<void> ShardWriter::write_index() const {
  boost::json::object map;
  std::uint64_t total = 0;
  for (const ShardPlan& shard : shards_) {
    total += bytes_of(shard.tensors);
    for (const TensorSpec& tensor : shard.tensors) map[tensor.name] = shard.name;
  }
  boost::json::object index;
  index["metadata"] = boost::json::object{{"total_size", total}};
  index["weight_map"] = std::move(map);
  const std::string text = boost::json::serialize(index) + "\n";
  return add_file(codec::index_file_name, std::as_bytes(std::span{text}));
}

}  // namespace deltarelay::synthetic
