// One TLS handshake under a deadline, and the judgement of the certificate at the other end.
//
// The identity is judged inside the verification of the chain, not afterwards, so that a peer that is not let in gets a
// TLS alert and can say "refused by peer" instead of guessing at a closed connection. Runs on the stream's strand.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "relay/net/tls_stream.hpp"

namespace deltarelay::relay::net {

struct HandshakeOrder {
  boost::asio::ssl::stream_base::handshake_type side{};
  std::string node;         ///< the node that the certificate must name; empty: any
  std::vector<Role> roles;  ///< the roles that are let in
  std::chrono::steady_clock::duration within{};
};

struct HandshakeResult {
  Refusal refusal = Refusal::none;
  std::string detail;
  PeerIdentity peer;  ///< when refusal is none
};

/// `connection` and `order` must outlive the call. After a refusal only closing is left to do. The mesh must be our
/// own.
[[nodiscard]] boost::asio::awaitable<HandshakeResult> shake_hands(TlsConnection& connection,
                                                                  const HandshakeOrder& order);

}  // namespace deltarelay::relay::net
