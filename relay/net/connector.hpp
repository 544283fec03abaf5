// Connects to a node by name: resolves each time, tries every address, shakes hands, checks that it is the node meant.
//
// One call, one answer, within resolve_within + addresses * (connect_within + handshake_within). Retries and back-off
// are the core's. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "relay/net/link.hpp"
#include "relay/net/tls_context.hpp"

namespace deltarelay::relay::net {

struct ConnectTarget {
  std::string node;     ///< whose certificate it must be
  std::string address;  ///< HOST:PORT or [V6]:PORT; the host a name or a number
};

struct ConnectConfig {
  std::chrono::steady_clock::duration resolve_within = std::chrono::seconds(5);
  std::chrono::steady_clock::duration connect_within = std::chrono::seconds(1);    ///< per address
  std::chrono::steady_clock::duration handshake_within = std::chrono::seconds(5);  ///< per address
};

struct ConnectResult {
  std::shared_ptr<Link> link;  ///< not started yet; null: see `refusal` and `detail`
  Refusal refusal = Refusal::none;
  std::string detail;
};

/// `handler` is called once, on environment.handlers. In TLS 1.3 a server judges our certificate after our side is done: its
/// refusal comes as the link's end (EndReason::refused_by_peer).
void async_connect(LinkEnvironment environment, std::shared_ptr<TlsContext> tls, ConnectTarget target,
                   ConnectConfig config, std::function<void(ConnectResult)> handler);

}  // namespace deltarelay::relay::net
