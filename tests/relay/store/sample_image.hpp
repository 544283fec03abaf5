// A small checkpoint in a directory of its own: one shard, three tensors, blocks of 4 KiB, data at an odd file offset.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codec/frame.hpp"
#include "codec/limits.hpp"
#include "relay/store/image.hpp"

namespace deltarelay::relay::testing {

struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "deltarelay-store-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  std::filesystem::path path;
};

inline constexpr std::uint32_t block_bytes = codec::block_bytes_min;

/// The first bytes of a safetensors file; padded with blanks so that the data begins `data_offset % 2 == 1`.
inline std::string shard_header(std::string json) {
  while (json.size() % 2 == 0) json += ' ';
  std::string out;
  for (unsigned shift = 0; shift < 64; shift += 8) out += static_cast<char>(json.size() >> shift & 0xff);
  return out + json;
}

/// "a": 4 whole blocks and a short one (BF16), "b": nothing, "c": 5 bytes.
inline constexpr std::size_t tensor_a_bytes = 4 * block_bytes + 10;
inline std::string sample_header() {
  const std::string a = std::to_string(tensor_a_bytes), c_end = std::to_string(tensor_a_bytes + 5);
  return shard_header(R"({"a":{"dtype":"BF16","shape":[)" + std::to_string(tensor_a_bytes / 2) + R"(],"data_offsets":[0,)" + a +
                      R"(]},"b":{"dtype":"F32","shape":[0],"data_offsets":[)" + a + "," + a +
                      R"(]},"c":{"dtype":"U8","shape":[5],"data_offsets":[)" + a + "," + c_end + "]}}");
}

inline std::filesystem::path write_sample(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  const auto path = directory / "model.safetensors";
  std::string content = sample_header();
  for (std::size_t i = 0; i < tensor_a_bytes + 5; ++i) content += static_cast<char>(i * 7 + i / 251);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

inline std::vector<std::byte> content_of(const Image& image, std::uint64_t ordinal) {
  const auto id = image.layout()->block_at(ordinal);
  std::vector<std::byte> out(image.layout()->size_of(id));
  REQUIRE(image.read_block(id, out).has_value());
  return out;
}

}  // namespace deltarelay::relay::testing
