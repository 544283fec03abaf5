// Frames: their structure (parse), the encoder that batches blocks, the decoder of single blocks. FORMAT.md, "FRAME".
#include "codec/frame.hpp"

#include "codec/bytes.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

constexpr unsigned encoding_bits = 4;  // FORMAT.md, "FRAME": the low bits of an entry's tag
static_assert(encoding_count <= 1u << encoding_bits);
// Tag, block, length, digest: the least that an entry takes.
constexpr std::size_t entry_bytes_min = 1 + 1 + 1 + sizeof(Digest);

struct EntryHead {
  FrameEntry entry;
  std::uint64_t data_bytes = 0;
};

// The id follows the one before by deltas that cannot be zero or negative: ascending order needs no check of its own.
EntryHead read_entry(ByteReader& reader, const FrameEntry* previous) {
  EntryHead out;
  const std::uint64_t tag = reader.varint();
  const std::uint64_t block = reader.varint();
  out.data_bytes = reader.varint();
  out.entry.target = reader.digest();

  const std::uint64_t encoding = tag & ((1u << encoding_bits) - 1);
  std::uint64_t tensor_at = tag >> encoding_bits, block_at = block;
  if (previous != nullptr) {
    if (tensor_at == 0) block_at += std::uint64_t{raw(previous->id.block)} + 1;
    tensor_at += raw(previous->id.tensor);
  }
  reader.require(tensor_at <= 0xffffffff && block <= 0xffffffff && block_at <= 0xffffffff);
  reader.require(out.data_bytes >= 1 && out.data_bytes <= frame_payload_bytes_max);
  reader.require(encoding < encoding_count, errc::unknown_encoding);
  out.entry.encoding = static_cast<Encoding>(encoding);
  out.entry.id = {TensorIndex{static_cast<std::uint32_t>(tensor_at)}, BlockIndex{static_cast<std::uint32_t>(block_at)}};
  return out;
}

}  // namespace

bool needs_base(Encoding encoding) noexcept {
  switch (encoding) {
    case Encoding::raw:
    case Encoding::lz4:
    case Encoding::dense_planes:
      return false;
    case Encoding::xor_lz4:
    case Encoding::sparse:
    case Encoding::class_rans:
      break;
  }
  return true;
}

const char* encoding_name(Encoding encoding) noexcept {
  switch (encoding) {
    case Encoding::raw:
      return "raw";
    case Encoding::lz4:
      return "lz4";
    case Encoding::xor_lz4:
      return "xor+lz4";
    case Encoding::sparse:
      return "sparse";
    case Encoding::class_rans:
      return "class";
    case Encoding::dense_planes:
      return "planes";
  }
  return "unknown";
}

FrameStats& FrameStats::operator+=(const FrameStats& other) noexcept {
  blocks += other.blocks;
  changed_blocks += other.changed_blocks;
  elements += other.elements;
  changed_elements += other.changed_elements;
  for (std::size_t i = 0; i < encoding_count; ++i) {
    payload_bytes_by_encoding[i] += other.payload_bytes_by_encoding[i];
    blocks_by_encoding[i] += other.blocks_by_encoding[i];
  }
  overhead_bytes += other.overhead_bytes;
  return *this;
}

Result<FrameView> FrameView::parse(Bytes payload) {
  if (payload.size() > frame_payload_bytes_max) return errc::malformed_payload;
  ByteReader reader(payload);
  const std::uint64_t count = reader.varint();
  reader.require(count >= 1 && count <= frame_blocks_max);
  FrameView out;
  out.tables = reader.bytes(reader.varint());
  if (reader.ok() && count > reader.remaining() / entry_bytes_min) reader.fail(errc::truncated);
  if (!reader.ok()) return reader.finish().error();

  std::vector<std::uint64_t> data_bytes;
  data_bytes.reserve(static_cast<std::size_t>(count));
  out.entries.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    EntryHead head = read_entry(reader, out.entries.empty() ? nullptr : &out.entries.back());
    out.entries.push_back(head.entry);
    data_bytes.push_back(head.data_bytes);
  }
  for (std::size_t i = 0; i < out.entries.size() && reader.ok(); ++i) out.entries[i].data = reader.bytes(data_bytes[i]);
  if (auto end = reader.finish(); !end) return end.error();
  return out;
}

std::vector<std::byte> build_frame(Bytes tables, std::span<const FrameEntry> entries) {
  std::size_t data_bytes = 0;
  for (const FrameEntry& entry : entries) data_bytes += entry.data.size();
  std::vector<std::byte> out;
  out.reserve(16 + tables.size() + entries.size() * (entry_bytes_min + 12) + data_bytes);
  ByteWriter writer(out);
  writer.varint(entries.size());
  writer.varint(tables.size());
  writer.bytes(tables);
  const FrameEntry* previous = nullptr;
  for (const FrameEntry& entry : entries) {
    const std::uint64_t tensor = raw(entry.id.tensor) - (previous != nullptr ? raw(previous->id.tensor) : 0);
    const bool same = previous != nullptr && tensor == 0;
    writer.varint(tensor << encoding_bits | static_cast<std::uint64_t>(entry.encoding));
    writer.varint(raw(entry.id.block) - (same ? raw(previous->id.block) + 1 : 0));
    writer.varint(entry.data.size());
    writer.digest(entry.target);
    previous = &entry;
  }
  for (const FrameEntry& entry : entries) writer.bytes(entry.data);
  return out;
}

}  // namespace deltarelay::codec
