// Handshakes and why they fail: one cause, one code (peer_identity.hpp, Refusal).
#include "relay/net/handshake.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include "relay/net/deadline.hpp"
#include "relay/net/link_end.hpp"
#include "relay/net/x509.hpp"

namespace deltarelay::relay::net {
namespace {
namespace asio = boost::asio;

/// What the verification found; outlives the stream's callback because shake_hands() owns both.
struct Verdict {
  Refusal refusal = Refusal::none;
  std::string detail;
};

Refusal refusal_of_chain(int error) noexcept {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Refusal::expired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Refusal::not_yet_valid;
    case X509_V_ERR_CERT_REVOKED:
      return Refusal::revoked;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Refusal::unknown_ca;
    default:
      return Refusal::bad_certificate;
  }
}

Verdict judge_identity(const X509* certificate, const HandshakeOrder& order, const PeerIdentity& own) {
  const auto identity = certificate != nullptr ? identity_of(*certificate) : std::nullopt;
  if (!identity) return {Refusal::no_identity, "the certificate does not name one node of one mesh"};
  if (identity->mesh != own.mesh) return {Refusal::wrong_mesh, "the certificate is of " + identity->uri()};
  if (!order.node.empty() && identity->node != order.node)
    return {Refusal::wrong_name, "the certificate is of " + identity->uri() + ", dialled was \"" + order.node + "\""};
  if (std::find(order.roles.begin(), order.roles.end(), identity->role) == order.roles.end())
    return {Refusal::wrong_role, "the certificate is of " + identity->uri()};
  return {};
}

bool verify(bool chain_holds, asio::ssl::verify_context& context, const HandshakeOrder& order, const PeerIdentity& own,
            Verdict& verdict) {
  X509_STORE_CTX* store = context.native_handle();
  if (!chain_holds) {
    const int error = X509_STORE_CTX_get_error(store);
    verdict = {refusal_of_chain(error), X509_verify_cert_error_string(error)};
    return false;
  }
  if (X509_STORE_CTX_get_error_depth(store) != 0) return true;
  verdict = judge_identity(X509_STORE_CTX_get_current_cert(store), order, own);
  if (verdict.refusal == Refusal::none) return true;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return false;
}

Refusal refusal_of_tls(const boost::system::error_code& error) noexcept {
  if (is_peer_alert(error)) {
    return ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION
               ? Refusal::version_unsupported
               : Refusal::refused_by_peer;
  }
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_RECORD_TOO_SMALL:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_BAD_PROTOCOL_VERSION_NUMBER:
      return Refusal::not_tls;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_UNKNOWN_SSL_VERSION:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
      return Refusal::version_unsupported;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Refusal::no_certificate;
    default:
      return Refusal::handshake_failed;
  }
}

HandshakeResult failed(const boost::system::error_code& error, const Verdict& verdict) {
  HandshakeResult out;
  if (verdict.refusal != Refusal::none) {
    out.refusal = verdict.refusal;
    out.detail = verdict.detail;
    return out;
  }
  out.detail = error.message();
  if (error.category() == asio::error::get_ssl_category()) {
    out.refusal = refusal_of_tls(error);
  } else if (error == asio::error::operation_aborted) {
    out.refusal = Refusal::stopped;
    out.detail = "this process is stopping";
  } else {
    out.refusal = Refusal::closed_in_handshake;
  }
  return out;
}

}  // namespace

asio::awaitable<HandshakeResult> shake_hands(TlsConnection& connection, const HandshakeOrder& order) {
  Verdict verdict;
  auto callback = [&verdict, &order, &connection](bool chain_holds, asio::ssl::verify_context& context) {
    return verify(chain_holds, context, order, connection.set->identity, verdict);
  };
  boost::system::error_code ignored;
  connection.stream.set_verify_callback(callback, ignored);

  const auto done = co_await with_deadline(connection.stream.async_handshake(order.side, io), order.within);
  // The callback refers to this frame; in TLS 1.3 nothing verifies a certificate after the handshake.
  connection.stream.set_verify_callback([](bool, asio::ssl::verify_context&) { return false; }, ignored);

  HandshakeResult out;
  if (!done) {
    out.refusal = Refusal::handshake_timeout;
    out.detail = "the handshake did not end in time";
    co_return out;
  }
  if (const auto& error = std::get<0>(*done); error) {
    out = failed(error, verdict);
    co_return out;
  }
  const X509* certificate = SSL_get0_peer_certificate(connection.stream.native_handle());
  auto identity = certificate != nullptr ? identity_of(*certificate) : std::nullopt;
  if (!identity) {
    out.refusal = Refusal::no_certificate;
    co_return out;
  }
  out.peer = std::move(*identity);
  co_return out;
}

}  // namespace deltarelay::relay::net
