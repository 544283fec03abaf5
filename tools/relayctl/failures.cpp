#include "tools/relayctl/failures.hpp"

#include <cerrno>

#include "relay/net/net_error.hpp"

namespace deltarelay::relayctl {
namespace {

using codec::errc;
using relay::store_errc;
using relay::net::net_errc;

ExitCode code_of(errc code) {
  switch (code) {
    case errc::io_error:
    case errc::file_changed:
      return ExitCode::failed;
    default:
      return ExitCode::invalid;
  }
}

ExitCode code_of(store_errc code) {
  switch (code) {
    case store_errc::already_locked:
    case store_errc::symbolic_link:
    case store_errc::hard_linked:
    case store_errc::read_only:
    case store_errc::not_empty:
      return ExitCode::precondition;
    case store_errc::corrupt:
      return ExitCode::invalid;
    default:
      return ExitCode::failed;
  }
}

ExitCode code_of(net_errc code) {
  switch (code) {
    case net_errc::name_invalid:
    case net_errc::value_invalid:
      return ExitCode::usage;
    case net_errc::already_exists:
      return ExitCode::precondition;
    case net_errc::file_unreadable:
    case net_errc::write_failed:
    case net_errc::listen_failed:
    case net_errc::library_failed:
      return ExitCode::failed;
    default:
      return ExitCode::invalid;
  }
}

std::string_view try_of(errc code) {
  switch (code) {
    case errc::truncated:
    case errc::trailing_bytes:
    case errc::bad_magic:
    case errc::payload_digest_mismatch:
    case errc::malformed_payload:
      return "copy or encode the file again";
    case errc::major_version_unsupported:
    case errc::unknown_encoding:
      return "a relayctl of the release that wrote the file";
    case errc::signature_invalid:
      return "the content.pub of the mesh that signed it";
    case errc::not_signed:
      return "encode it with --key, or apply it without --verify-key if you trust its origin";
    case errc::key_invalid:
      return "the key files that `relayctl cert init-ca` wrote";
    case errc::file_changed:
      return "the same command when nobody writes to the directory";
    case errc::io_error:
      return "check path, permissions and free space";
    case errc::directory_unreadable:
    case errc::no_checkpoint:
      return "the path of a safetensors checkpoint: a directory of shards with their index, or one file";
    case errc::header_too_small:
    case errc::header_too_large:
    case errc::data_incomplete:
    case errc::shard_missing:
      return "copy the checkpoint again; it was cut short, or a file is missing";
    case errc::header_not_json:
    case errc::header_key_duplicate:
    case errc::tensor_info_invalid:
    case errc::dtype_unknown:
    case errc::tensor_size_overflow:
    case errc::tensor_size_mismatch:
    case errc::tensor_offsets_invalid:
    case errc::metadata_invalid:
    case errc::index_invalid:
    case errc::tensor_missing_in_shard:
    case errc::tensor_not_in_index:
    case errc::tensor_in_two_shards:
    case errc::shards_without_index:
      return "write the checkpoint anew with its index; readers of safetensors would disagree about this one";
    case errc::not_a_regular_file:
      return "put the file itself there; links and devices are not followed";
    default:
      return "";
  }
}

std::string_view try_of(store_errc code) {
  switch (code) {
    case store_errc::already_locked:
      return "stop the relayd that serves this image, or wait for the other command";
    default:
      return "";
  }
}

std::string_view try_of(net_errc code) {
  switch (code) {
    case net_errc::name_invalid:
      return "a name like hel-01";
    case net_errc::file_unreadable:
      return "check path and permissions";
    case net_errc::already_exists:
      return "another directory, or move the old files away";
    case net_errc::certificate_invalid:
    case net_errc::key_invalid:
      return "the PEM files that `relayctl cert` wrote";
    default:
      return "";
  }
}

std::string_view try_of_system(const boost::system::error_code& code) {
  using namespace boost::system::errc;
  if (code == no_space_on_device || code.value() == EDQUOT) return "free some space on that file system and repeat";
  if (code == file_too_large) return "a higher limit on the size of files (`ulimit -f`), or smaller files";
  if (code == permission_denied || code == operation_not_permitted)
    return "check who may write there, or name another place";
  if (code == read_only_file_system) return "a place on a file system that is mounted for writing";
  if (code == no_such_file_or_directory || code == not_a_directory)
    return "check the path; the directory above must be there";
  if (code == filename_too_long) return "a shorter name";
  if (code == too_many_files_open || code == too_many_files_open_in_system)
    return "a higher limit on open files (`ulimit -n`)";
  return "";
}

std::string_view try_of(const boost::system::error_code& code) {
  if (code.category() == codec::codec_category()) return try_of(static_cast<errc>(code.value()));
  if (code.category() == relay::store_category()) return try_of(static_cast<store_errc>(code.value()));
  if (code.category() == relay::net::net_category()) return try_of(static_cast<net_errc>(code.value()));
  return try_of_system(code);
}

}  // namespace

std::string_view try_next_of(const boost::system::error_code& code) {
  return try_of(code);
}

ExitCode exit_code_of(const boost::system::error_code& code) {
  if (code.category() == codec::codec_category()) return code_of(static_cast<errc>(code.value()));
  if (code.category() == relay::store_category()) return code_of(static_cast<store_errc>(code.value()));
  if (code.category() == relay::net::net_category()) return code_of(static_cast<net_errc>(code.value()));
  return ExitCode::failed;
}

int fail(const Context& context, std::string_view what, const codec::Failure& failure) {
  return context.fail(exit_code_of(failure.code), what, failure.text(), try_of(failure.code));
}

int fail(const Context& context, std::string_view what, const relay::StoreError& error) {
  return context.fail(exit_code_of(error.code), what, error.text(), try_of(error.code));
}

}  // namespace deltarelay::relayctl
