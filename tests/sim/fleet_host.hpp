// One simulated host and what its frames carry, for the files that make up Fleet.
//
// A block of an image is one number; a frame is a list of (block, value).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/bytes.hpp"
#include "codec/digest.hpp"
#include "tests/sim/fleet.hpp"

namespace deltarelay::sim {

inline codec::Digest digest_of_block(std::uint64_t value) {
  return codec::digest_of(std::as_bytes(std::span(&value, 1)));
}

inline codec::Digest digest_of_image(const Blocks& blocks) {
  std::vector<codec::Digest> table;
  for (std::uint64_t block : blocks) table.push_back(digest_of_block(block));
  return codec::digest_of(std::span<const codec::Digest>(table));
}

struct Piece {
  std::uint64_t block = 0, value = 0;
};
inline std::vector<std::byte> encode(const std::vector<Piece>& pieces) {
  std::vector<std::byte> out;
  codec::ByteWriter writer(out);
  for (const Piece& piece : pieces) {
    writer.u64(piece.block);
    writer.u64(piece.value);
  }
  return out;
}
inline std::vector<Piece> decode(codec::Bytes in) {
  std::vector<Piece> out;
  codec::ByteReader reader(in);
  while (reader.remaining() != 0) {
    Piece piece;
    piece.block = reader.u64();
    piece.value = reader.u64();
    out.push_back(piece);
  }
  return out;
}

/// What survives a crash (image, ledger, log) and what does not (core, links, sync tables).
struct Fleet::Host {
  HostSpec spec;
  Blocks image;
  bool has_image = false;
  relay::ImageState committed;
  std::map<Version, std::vector<codec::RecordPtr>> log;
  std::map<Version, std::size_t> synced;  ///< root: records that a crash cannot take
  std::uint64_t boots = 0;
  codec::Epoch epoch{};
  Version highest_used{};
  std::optional<relay::PendingRefit> pending;

  std::unique_ptr<relay::Node> core;
  bool dead = false;
  bool damaged_at_rest = false;
  std::uint64_t generation = 0;  // actions of a dead process are not performed
  std::map<relay::LinkId, LinkPtr> links;
  codec::RecordPtr sync_end, sync_layout;
  std::vector<codec::Digest> sync_table;
  std::optional<Version> applying;
};

}  // namespace deltarelay::sim
