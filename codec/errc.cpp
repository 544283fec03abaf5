#include "codec/errc.hpp"

#include <boost/system/system_error.hpp>

namespace deltarelay::codec {
namespace {

const char* sentence(errc e) noexcept {
  switch (e) {
    case errc::ok: return "ok";
    case errc::truncated: return "truncated: fewer bytes than the length says";
    case errc::trailing_bytes: return "bytes are left over after the last field";
    case errc::bad_magic: return "not a Deltarelay record";
    case errc::major_version_unsupported: return "written in another major format version";
    case errc::reserved_not_zero: return "a reserved field is not zero";
    case errc::payload_too_large: return "payload past the limit of its record type";
    case errc::unknown_record_type: return "record type not known to this release";
    case errc::mesh_mismatch: return "record of another mesh";
    case errc::payload_digest_mismatch: return "payload SHA-256 differs from the header";
    case errc::signature_invalid: return "signature does not verify with the content key";
    case errc::not_signed: return "record is not signed";
    case errc::key_invalid: return "not an Ed25519 key in PEM form";
    case errc::malformed_payload: return "malformed payload";
    case errc::unknown_encoding: return "block encoding not known to this release";
    case errc::block_out_of_range: return "names a tensor or block that the layout lacks";
    case errc::block_size_mismatch: return "decodes to another size than the block has";
    case errc::base_required: return "encoded against a base, and none was given";
    case errc::digest_mismatch: return "content differs from its digest";
    case errc::base_digest_mismatch: return "block is neither at the base nor at the target version";
    case errc::table_too_large: return "table past its limit";
    case errc::header_too_small: return "shorter than the 8-byte header length";
    case errc::header_too_large: return "header length past the limit or past the end of the file";
    case errc::header_not_json: return "header is not one UTF-8 JSON object";
    case errc::header_key_duplicate: return "a key appears twice in the header";
    case errc::tensor_info_invalid: return "tensor entry is malformed";
    case errc::dtype_unknown: return "unknown dtype";
    case errc::tensor_size_overflow: return "shape overflows 64 bits";
    case errc::tensor_size_mismatch: return "shape and dtype do not fit the byte range";
    case errc::tensor_offsets_invalid: return "byte ranges overlap, leave a hole, or run backwards";
    case errc::data_incomplete: return "tensors do not cover the data section exactly";
    case errc::metadata_invalid: return "__metadata__ is not an object of strings";
    case errc::directory_unreadable: return "directory cannot be read";
    case errc::no_checkpoint: return "no safetensors checkpoint in the directory";
    case errc::index_invalid: return "index is malformed";
    case errc::shard_missing: return "the index names a shard that is not there";
    case errc::tensor_missing_in_shard: return "the index gives a tensor to a shard that lacks it";
    case errc::tensor_not_in_index: return "a shard holds a tensor that the index gives to no shard";
    case errc::tensor_in_two_shards: return "one tensor is in two shards";
    case errc::shards_without_index: return "several shards and no index";
    case errc::too_many_tensors: return "too many tensors, shards or files";
    case errc::not_a_regular_file: return "not a regular file";
    case errc::file_changed: return "file changed while it was read";
    case errc::io_error: return "input/output error";
  }
  return "unknown codec error";
}

class CodecCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "deltarelay.codec"; }
  std::string message(int value) const override { return sentence(static_cast<errc>(value)); }
};

}  // namespace

const boost::system::error_category& codec_category() noexcept {
  static const CodecCategory category;
  return category;
}

std::string Failure::text() const {
  std::string out;
  if (!where.empty()) out = where + ": ";
  out += code.message();
  if (!why.empty()) out += " (" + why + ")";
  return out;
}

void throw_exception_from_error(const Failure& failure, const boost::source_location& loc) {
  boost::throw_exception(boost::system::system_error(failure.code, failure.text()), loc);
}

}  // namespace deltarelay::codec
