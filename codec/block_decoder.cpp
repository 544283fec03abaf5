// One block of a frame, decoded by its encoding. Everything that reads a peer's bytes is bounded by the block's size.
#include "codec/encoding/changes.hpp"
#include "codec/encoding/class_code.hpp"
#include "codec/encoding/lz4.hpp"
#include "codec/encoding/planes.hpp"
#include "codec/encoding/raw.hpp"
#include "codec/encoding/sparse.hpp"
#include "codec/encoding/xor_lz4.hpp"
#include "codec/frame.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {

struct BlockDecoder::State {
  PrefixCode code;
  ClassDecoder classes;
  PlanesDecoder planes;

  Result<void> decode_whole(const FrameEntry& entry, DType dtype, Bytes base, MutableBytes out);
};

BlockDecoder::BlockDecoder() : state_(std::make_unique<State>()) {}
BlockDecoder::BlockDecoder(BlockDecoder&&) noexcept = default;
BlockDecoder& BlockDecoder::operator=(BlockDecoder&&) noexcept = default;
BlockDecoder::~BlockDecoder() = default;

Result<Digest> BlockDecoder::decode(const FrameEntry& entry, Bytes tables, DType dtype, Bytes base, MutableBytes out) {
  if (out.empty() || out.size() > block_bytes_max) return errc::block_size_mismatch;
  if (needs_base(entry.encoding)) {
    if (base.empty()) return errc::base_required;
    if (base.size() != out.size()) return errc::block_size_mismatch;
  }
  if (entry.encoding == Encoding::class_rans)
    return state_->classes.decode(entry.data, tables, block_width(dtype, out.size()), base, out);
  if (auto done = state_->decode_whole(entry, dtype, base, out); !done) return done.error();
  return digest_of(out);
}

// The encodings that do not hash as they go.
Result<void> BlockDecoder::State::decode_whole(const FrameEntry& entry, DType dtype, Bytes base, MutableBytes out) {
  switch (entry.encoding) {
    case Encoding::raw:
      return decode_raw(entry.data, out);
    case Encoding::lz4:
      return decode_lz4(entry.data, out);
    case Encoding::xor_lz4:
      return decode_xor_lz4(entry.data, base, out);
    case Encoding::sparse:
      return decode_sparse(entry.data, block_width(dtype, out.size()), base, out, code);
    case Encoding::class_rans:
      break;
    case Encoding::dense_planes:
      return planes.decode(entry.data, block_width(dtype, out.size()), out);
  }
  return errc::unknown_encoding;
}

}  // namespace deltarelay::codec
