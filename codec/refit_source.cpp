// A mapped checkpoint as a source of encode_refit(); apart from the encoder, which knows no files.
#include "codec/checkpoint.hpp"
#include "codec/refit_encoder.hpp"

namespace deltarelay::codec {

BlockReader reader_of(const CheckpointMap& map) {
  return [&map](BlockId id, MutableBytes /*scratch*/) -> Result<Bytes> { return map.block(id); };
}

}  // namespace deltarelay::codec
