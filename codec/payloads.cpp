// Fields of the payloads to bytes and back. Formats: FORMAT.md, "Payloads".
#include "codec/payloads.hpp"

#include <algorithm>

#include "codec/bytes.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::size_t name_bytes_max = 255;
// The least that one entry of a list takes, to bound counts: its length prefix, one byte of name, its fixed fields.
constexpr std::size_t companion_bytes_min = 4 + 1 + 8 + sizeof(Sha256);
constexpr std::size_t shard_bytes_min = 4 + 1 + 8 + 4 + 8;

bool is_plain_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > name_bytes_max || name == "." || name == "..") return false;
  return std::ranges::all_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f && byte != '/';
  });
}

template <class List>
bool names_ascend(const List& list) noexcept {
  return std::ranges::adjacent_find(list, [](const auto& a, const auto& b) { return !(a.name < b.name); }) ==
         list.end();
}

}  // namespace

bool is_companion_name(std::string_view name) noexcept {
  return is_plain_name(name) && !name.ends_with(".safetensors") && !name.ends_with(".safetensors.index.json") &&
         name != "deltarelay.json" && name != "deltarelay.lock" && !name.starts_with(".deltarelay");
}

bool is_shard_name(std::string_view name) noexcept {
  return is_plain_name(name) && name.ends_with(".safetensors");
}

std::vector<std::byte> BeginPayload::encode() const {
  std::vector<std::byte> out;
  ByteWriter writer(out);
  writer.u64(raw(base));
  writer.digest(base_image);
  writer.digest(layout_digest);
  writer.u32(block_bytes);
  writer.u16(stripe_count);
  writer.u64(total_bytes);
  return out;
}

Result<BeginPayload> BeginPayload::decode(Bytes in) {
  ByteReader reader(in);
  BeginPayload out;
  out.base = Version{reader.u64()};
  out.base_image = reader.digest();
  out.layout_digest = reader.digest();
  out.block_bytes = reader.u32();
  out.stripe_count = reader.u16();
  out.total_bytes = reader.u64();
  reader.require(out.stripe_count >= 1);
  reader.require(std::has_single_bit(out.block_bytes) && out.block_bytes >= block_bytes_min &&
                 out.block_bytes <= block_bytes_max);
  if (auto end = reader.finish(); !end) return end.error();
  return out;
}

std::vector<std::byte> FilePayload::encode() const {
  std::vector<std::byte> out;
  out.reserve(8 + name.size() + sha256.size() + content.size());
  ByteWriter writer(out);
  writer.sized_string(name);
  writer.bytes(sha256);
  writer.sized_bytes(content);
  return out;
}

Result<FilePayload> FilePayload::decode(Bytes in) {
  ByteReader reader(in);
  FilePayload out;
  out.name = reader.sized_string(name_bytes_max);
  reader.require(is_companion_name(out.name));
  out.sha256 = reader.fixed<sizeof(Sha256)>();
  const Bytes content = reader.sized_bytes(file_payload_bytes_max);
  if (auto end = reader.finish(); !end) return end.error();
  if (sha256_of(content) != out.sha256) return errc::payload_digest_mismatch;
  out.content.assign(content.begin(), content.end());
  return out;
}

std::vector<std::byte> EndPayload::encode() const {
  std::vector<std::byte> out;
  ByteWriter writer(out);
  writer.u64(frame_count);
  writer.u64(changed_blocks);
  writer.u64(changed_elements);
  writer.digest(image);
  writer.digest(layout_digest);
  writer.u32(static_cast<std::uint32_t>(companions.size()));
  for (const CompanionFile& file : companions) {
    writer.sized_string(file.name);
    writer.u64(file.bytes);
    writer.bytes(file.sha256);
  }
  return out;
}

Result<EndPayload> EndPayload::decode(Bytes in) {
  ByteReader reader(in);
  EndPayload out;
  out.frame_count = reader.u64();
  out.changed_blocks = reader.u64();
  out.changed_elements = reader.u64();
  out.image = reader.digest();
  out.layout_digest = reader.digest();
  out.companions.resize(reader.count(companion_bytes_min, companion_count_max));
  for (CompanionFile& file : out.companions) {
    file.name = reader.sized_string(name_bytes_max);
    file.bytes = reader.u64();
    file.sha256 = reader.fixed<sizeof(Sha256)>();
    reader.require(is_companion_name(file.name));
    if (!reader.ok()) break;
  }
  reader.require(!reader.ok() || names_ascend(out.companions));
  if (auto end = reader.finish(); !end) return end.error();
  return out;
}

std::vector<std::byte> LayoutPayload::encode() const {
  std::vector<std::byte> out;
  ByteWriter writer(out);
  writer.sized_bytes(layout);
  writer.u32(static_cast<std::uint32_t>(shards.size()));
  for (const ShardSkeleton& shard : shards) {
    writer.sized_string(shard.name);
    writer.u64(shard.file_bytes);
    writer.sized_bytes(shard.header);
  }
  writer.sized_bytes(index_json);
  return out;
}

Result<LayoutPayload> LayoutPayload::decode(Bytes in) {
  ByteReader reader(in);
  LayoutPayload out;
  const Bytes layout = reader.sized_bytes(table_payload_bytes_max);
  out.layout.assign(layout.begin(), layout.end());
  out.shards.resize(reader.count(shard_bytes_min, shard_count_max));
  for (ShardSkeleton& shard : out.shards) {
    shard.name = reader.sized_string(name_bytes_max);
    shard.file_bytes = reader.u64();
    const Bytes header = reader.sized_bytes(table_payload_bytes_max);
    shard.header.assign(header.begin(), header.end());
    reader.require(is_shard_name(shard.name) && header.size() > 8 && header.size() <= shard.file_bytes);
    if (!reader.ok()) break;
  }
  reader.require(!reader.ok() || names_ascend(out.shards));
  const Bytes index_json = reader.sized_bytes(table_payload_bytes_max);
  if (auto end = reader.finish(); !end) return end.error();
  out.index_json.assign(index_json.begin(), index_json.end());
  return out;
}

}  // namespace deltarelay::codec
