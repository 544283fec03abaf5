// A peer that is not ours: blocking TLS or plain TCP on 127.0.0.1, able to do everything wrong.
//
// Its calls block; a test that blocks for ever is ended by CTest's time limit.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "codec/types.hpp"
#include "relay/net/tls_context.hpp"

namespace deltarelay::tests {

/// Plain TCP.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port) : socket_(io_) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }
  void write(std::string_view text) { boost::asio::write(socket_, boost::asio::buffer(text), failed_); }
  /// True when the other side has ended the connection; bytes before that are dropped.
  [[nodiscard]] bool is_ended() {
    std::array<char, 4096> bytes{};
    boost::system::error_code failed;
    while (!failed) socket_.read_some(boost::asio::buffer(bytes), failed);
    return true;
  }
  void close() { socket_.close(); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
  boost::system::error_code failed_;
};

/// TLS; does not look at the server's certificate.
class RawClient {
 public:
  RawClient(std::uint16_t port, const std::optional<relay::net::TlsPaths>& paths, bool tls_1_2 = false)
      : context_(boost::asio::ssl::context::tls_client) {
    if (paths) {
      context_.use_certificate_chain_file(paths->certificate.string());
      context_.use_private_key_file(paths->key.string(), boost::asio::ssl::context::pem);
    }
    if (tls_1_2) SSL_CTX_set_max_proto_version(context_.native_handle(), TLS1_2_VERSION);
    stream_.emplace(io_, context_);
    stream_->next_layer().connect({boost::asio::ip::make_address("127.0.0.1"), port});
    stream_->handshake(boost::asio::ssl::stream_base::client, handshake_error_);
  }
  [[nodiscard]] boost::system::error_code handshake_error() const noexcept { return handshake_error_; }

  void write(codec::Bytes bytes) {
    boost::system::error_code ignored;
    boost::asio::write(*stream_, boost::asio::buffer(bytes.data(), bytes.size()), ignored);
  }
  /// The error that reading ends with; what comes before it is dropped.
  [[nodiscard]] boost::system::error_code read_to_end() {
    std::array<char, 4096> bytes{};
    boost::system::error_code failed;
    while (!failed) stream_->read_some(boost::asio::buffer(bytes), failed);
    return failed;
  }
  /// The next write carries new keys, and asks the other side for new ones.
  void update_keys() { SSL_key_update(stream_->native_handle(), SSL_KEY_UPDATE_REQUESTED); }
  [[nodiscard]] std::vector<std::byte> read(std::size_t size) {
    std::vector<std::byte> out(size);
    boost::system::error_code failed;
    out.resize(boost::asio::read(*stream_, boost::asio::buffer(out), failed));
    return out;
  }
  /// close_notify, without waiting for the other side's.
  void send_close_notify() {
    SSL_set_shutdown(stream_->native_handle(), SSL_RECEIVED_SHUTDOWN);
    boost::system::error_code ignored;
    stream_->shutdown(ignored);
  }
  /// The end of TCP without close_notify.
  void cut() { stream_->next_layer().shutdown(boost::asio::ip::tcp::socket::shutdown_send); }
  /// RST.
  void reset() {
    stream_->next_layer().set_option(boost::asio::socket_base::linger(true, 0));
    stream_->next_layer().close();
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ssl::context context_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket>> stream_;
  boost::system::error_code handshake_error_;
};

}  // namespace deltarelay::tests
