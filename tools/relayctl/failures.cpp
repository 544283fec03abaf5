#include "tools/relayctl/failures.hpp"

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
      return "the path of a safetensors checkpoint";
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

std::string_view try_of(const boost::system::error_code& code) {
  if (code.category() == codec::codec_category()) return try_of(static_cast<errc>(code.value()));
  if (code.category() == relay::store_category()) return try_of(static_cast<store_errc>(code.value()));
  if (code.category() == relay::net::net_category()) return try_of(static_cast<net_errc>(code.value()));
  if (code == boost::system::errc::no_space_on_device) return "free some space on that file system and repeat";
  return "";
}

}  // namespace

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
