// Every way in which the codec refuses input, as one enum with a category and a sentence each.
//
// `Result<T>` is the return type of fallible functions across the project; boost::system::result is not [[nodiscard]]
// in Boost 1.81, so each function that returns one is marked.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <string>
#include <string_view>

namespace deltarelay::codec {

template <class T>
using Result = boost::system::result<T>;
using boost::system::error_code;

enum class errc {
  ok = 0,
  // records (FORMAT.md)
  truncated,                  ///< fewer bytes than the header or a length in it says
  trailing_bytes,             ///< bytes left over after the last field
  bad_magic,                  ///< not a Deltarelay record at all
  major_version_unsupported,  ///< written by an incompatible release
  reserved_not_zero,          ///< a reserved field or flag is set
  payload_too_large,          ///< a length past the limit of its record type
  unknown_record_type,        ///< skippable: same major version, type not known here
  mesh_mismatch,              ///< a record of another fleet
  payload_digest_mismatch,    ///< SHA-256 of the payload differs from the header's
  signature_invalid,          ///< the Ed25519 signature over the header does not verify
  not_signed,                 ///< a log record without a signature where one is required
  key_invalid,                ///< a key file that is not an Ed25519 PEM key
  // payloads
  malformed_payload,        ///< a field out of its range or fields that contradict each other
  unknown_encoding,         ///< a block encoding of a newer minor version
  block_out_of_range,       ///< names a tensor or block that the layout lacks
  block_size_mismatch,      ///< decodes to another size than the block has
  base_required,            ///< the encoding needs the old block and none was given
  digest_mismatch,          ///< decoded bytes differ from the target digest
  base_digest_mismatch,     ///< the block is neither base nor target
  table_too_large,          ///< a tensor table or list past its limit
  // safetensors
  header_too_small,         ///< the file is shorter than its 8-byte length prefix
  header_too_large,         ///< the length prefix is past the limit or past the file
  header_not_json,          ///< not UTF-8 JSON, not one object, or nested too deep
  header_key_duplicate,     ///< a name or field appears twice
  tensor_info_invalid,      ///< an entry's dtype, shape or offsets are missing or malformed
  dtype_unknown,            ///< a dtype name the reference does not know
  tensor_size_overflow,     ///< shape times element size overflows 64 bits
  tensor_size_mismatch,     ///< shape times element size is not the byte range
  tensor_offsets_invalid,   ///< overlap, hole, or begin after end
  data_incomplete,          ///< the tensors do not cover the data section exactly
  metadata_invalid,         ///< __metadata__ is not an object of strings
  // checkpoint directories
  directory_unreadable,     ///< missing, not a directory, or no permission
  no_checkpoint,            ///< no safetensors file in the directory
  index_invalid,            ///< model.safetensors.index.json is malformed
  shard_missing,            ///< the index names a file that is not there
  tensor_missing_in_shard,  ///< the index gives a tensor to a shard that lacks it
  tensor_not_in_index,      ///< a shard holds a tensor that the index gives to no shard
  tensor_in_two_shards,     ///< one tensor name in two shards and no index decides
  shards_without_index,     ///< several shards and no index
  too_many_tensors,         ///< past tensor_count_max, shard_count_max or companion_count_max
  not_a_regular_file,       ///< a shard is a link, device or directory
  file_changed,             ///< a file's size, time or identity changed while it was read
  io_error,                 ///< the operating system refused; see the detail
};

[[nodiscard]] const boost::system::error_category& codec_category() noexcept;
[[nodiscard]] inline error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), codec_category()}; }

/// A refusal that an operator reads: which code, where (file, tensor or record), and why in one sentence.
struct Failure {
  error_code code;
  std::string where;  ///< a path, tensor name or record position; may be empty
  std::string why;    ///< the particulars; may be empty, then the code's own sentence stands

  /// "WHERE: SENTENCE (why)"
  [[nodiscard]] std::string text() const;
};

/// For functions whose refusals are shown to operators (files, directories); decoders of wire bytes use Result.
template <class T>
using Checked = boost::system::result<T, Failure>;

[[noreturn]] void throw_exception_from_error(const Failure& failure, const boost::source_location& loc);

}  // namespace deltarelay::codec

template <>
struct boost::system::is_error_code_enum<deltarelay::codec::errc> : std::true_type {};
