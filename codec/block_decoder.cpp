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
};

BlockDecoder::BlockDecoder() : state_(std::make_unique<State>()) {}
BlockDecoder::BlockDecoder(BlockDecoder&&) noexcept = default;
BlockDecoder& BlockDecoder::operator=(BlockDecoder&&) noexcept = default;
BlockDecoder::~BlockDecoder() = default;

Result<void> BlockDecoder::decode(const FrameEntry& entry, Bytes tables, DType dtype, Bytes base, MutableBytes out) {
  if (out.empty() || out.size() > block_bytes_max) return errc::block_size_mismatch;
  if (needs_base(entry.encoding)) {
    if (base.empty()) return errc::base_required;
    if (base.size() != out.size()) return errc::block_size_mismatch;
  }
  switch (entry.encoding) {
    case Encoding::raw:
      return decode_raw(entry.data, out);
    case Encoding::lz4:
      return decode_lz4(entry.data, out);
    case Encoding::xor_lz4:
      return decode_xor_lz4(entry.data, base, out);
    case Encoding::sparse:
      return decode_sparse(entry.data, block_width(dtype, out.size()), base, out, state_->code);
    case Encoding::class_rans:
      return state_->classes.decode(entry.data, tables, block_width(dtype, out.size()), base, out);
    case Encoding::dense_planes:
      return state_->planes.decode(entry.data, block_width(dtype, out.size()), out);
  }
  return errc::unknown_encoding;
}

}  // namespace deltarelay::codec
