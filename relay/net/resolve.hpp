// From "HOST:PORT" to addresses, under a deadline. Internal to relay/net.
//
// The C library's resolver cannot be interrupted: Asio runs it on a thread of its own, and after the deadline its late
// answer is dropped. Numeric hosts never reach it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/net/peer_identity.hpp"

namespace deltarelay::relay::net {

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
/// HOST:PORT or [V6]:PORT with a port from 1 to 65535; nullopt for anything else.
[[nodiscard]] std::optional<HostPort> parse_host_port(std::string_view text);

struct ResolveResult {
  std::vector<boost::asio::ip::tcp::endpoint> endpoints;
  Refusal refusal = Refusal::none;
  std::string detail;
};
/// Runs on the caller's strand.
[[nodiscard]] boost::asio::awaitable<ResolveResult> resolve(std::string address,
                                                            std::chrono::steady_clock::duration within);

}  // namespace deltarelay::relay::net
