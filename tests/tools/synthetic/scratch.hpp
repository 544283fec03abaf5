// What the tests of the trainer share: a directory of their own, and checkpoints read back through the codec.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "codec/bytes.hpp"
#include "codec/checkpoint.hpp"
#include "tools/synthetic/shard_writer.hpp"

namespace deltarelay::synthetic::tests {

/// Gone again at the end, with everything in it.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "deltarelay-synthetic-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }
  /// Everything in it that nobody asked for would be seen here.
  [[nodiscard]] std::size_t entries() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) count += !entry.path().empty();
    return count;
  }

 private:
  std::filesystem::path path_;
};

inline codec::CheckpointMap open_map(const std::filesystem::path& path) {
  auto checkpoint = codec::Checkpoint::open(path);
  if (!checkpoint) FAIL(checkpoint.error().text());
  auto map = codec::CheckpointMap::open(std::move(*checkpoint));
  if (!map) FAIL(map.error().text());
  return std::move(*map);
}

/// Same names, dtypes, shapes and bytes; files do not matter.
inline bool same_content(const std::filesystem::path& a, const std::filesystem::path& b) {
  const codec::CheckpointMap left = open_map(a), right = open_map(b);
  if (left.layout().digest() != right.layout().digest()) return false;
  for (std::uint32_t i = 0; i < left.layout().tensors().size(); ++i)
    if (!std::ranges::equal(left.tensor(codec::TensorIndex{i}), right.tensor(codec::TensorIndex{i}))) return false;
  return true;
}

template <class T>
std::vector<T> elements_of_tensor(const codec::CheckpointMap& map, std::string_view name) {
  const std::size_t index = map.layout().find(name);
  REQUIRE(index < map.layout().tensors().size());
  const codec::Bytes bytes = map.tensor(codec::TensorIndex{static_cast<std::uint32_t>(index)});
  std::vector<T> out(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = codec::load_le<T>(bytes.data() + i * sizeof(T));
  return out;
}

/// A checkpoint of one shard with one tensor of given bit patterns.
template <class T>
void write_tensor(const std::filesystem::path& directory, codec::DType dtype, const std::vector<T>& patterns) {
  std::filesystem::create_directory(directory);
  auto writer = ShardWriter::create(
      directory, {{"model.safetensors", {{"w", dtype, {patterns.size()}, patterns.size() * sizeof(T)}}}});
  REQUIRE(writer.has_value());
  std::vector<std::byte> bytes(patterns.size() * sizeof(T));
  for (std::size_t i = 0; i < patterns.size(); ++i) codec::store_le(bytes.data() + i * sizeof(T), patterns[i]);
  REQUIRE(writer->write(0, 0, 0, bytes).has_value());
}

}  // namespace deltarelay::synthetic::tests
