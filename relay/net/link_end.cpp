#include "relay/net/link_end.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

namespace deltarelay::relay::net {
namespace asio = boost::asio;

std::string_view code(EndReason why) noexcept {
  switch (why) {
    case EndReason::closed_here:
      return "closed_here";
    case EndReason::closed_by_peer:
      return "closed_by_peer";
    case EndReason::truncated:
      return "truncated";
    case EndReason::reset:
      return "reset";
    case EndReason::refused_by_peer:
      return "refused_by_peer";
    case EndReason::silent:
      return "silent";
    case EndReason::no_progress:
      return "no_progress";
    case EndReason::bad_record:
      return "bad_record";
    case EndReason::send_queue_full:
      return "send_queue_full";
    case EndReason::tls_failed:
      return "tls_failed";
    case EndReason::stopped:
      return "stopped";
    case EndReason::internal_error:
      return "internal_error";
  }
  return "unknown";
}

bool is_peer_alert(const boost::system::error_code& error) noexcept {
  // OpenSSL gives an alert from the peer the reason 1000 + the alert's number.
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) >= SSL_AD_REASON_OFFSET;
}

LinkEnd link_end_of(const boost::system::error_code& error, bool inside_record) {
  if (error == asio::error::eof) {
    if (inside_record) return {EndReason::truncated, "the peer closed the connection inside a record"};
    return {EndReason::closed_by_peer, "the peer closed the connection"};
  }
  if (error == asio::ssl::error::stream_truncated)
    return {EndReason::truncated, "the connection ended without a closing message, as when a process is killed"};
  if (is_peer_alert(error)) return {EndReason::refused_by_peer, error.message()};
  if (error.category() == asio::error::get_ssl_category()) return {EndReason::tls_failed, error.message()};
  return {EndReason::reset, error.message()};
}

HeaderCheck signed_records_of(const codec::MeshId& mesh, codec::ContentVerifier verifier) {
  return [mesh, verifier = std::move(verifier)](const codec::RecordHeader& header,
                                                codec::Bytes header_bytes) -> codec::Result<void> {
    if (header.is_log_record()) return codec::verify_record_header(header, header_bytes, mesh, verifier);
    if (header.mesh != mesh) return codec::errc::mesh_mismatch;
    return {};
  };
}

}  // namespace deltarelay::relay::net
