// The stream types behind links, and the set of certificates that a connection was begun with. Internal to relay/net:
// its .cpp files only, so that the rest of the daemon does not compile Asio's TLS.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <utility>

#include "relay/net/tls_context.hpp"

namespace deltarelay::relay::net {

/// One reading of the files of TlsPaths. Immutable once published, hence shared by threads.
struct TlsContext::Set {
  Set() : context(boost::asio::ssl::context::tlsv13) {}

  boost::asio::ssl::context context;
  PeerIdentity identity;
  std::chrono::system_clock::time_point expires;
};

/// A TLS stream on its strand, together with the set that it was made from.
struct TlsConnection {
  using Stream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

  TlsConnection(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext::Set> used)
      : set(std::move(used)), stream(std::move(socket), set->context) {}

  [[nodiscard]] boost::asio::ip::tcp::socket& socket() noexcept { return stream.next_layer(); }

  std::shared_ptr<TlsContext::Set> set;  // before the stream: it must go last
  Stream stream;
};

}  // namespace deltarelay::relay::net
