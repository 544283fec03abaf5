// Accepts connections and hands over those that prove to be of this mesh as links.
//
// The accept loop waits for nobody: each handshake is a task of its own with a deadline, and both handshakes and links
// have a limit. A connection that comes to nothing is counted by reason and logged (logger "relay.net"), one line per
// reason and second at the most. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codec/errc.hpp"
#include "relay/net/link.hpp"
#include "relay/net/tls_context.hpp"

namespace deltarelay::relay::net {

struct ListenerConfig {
  std::string address = "0.0.0.0";  ///< numeric
  std::uint16_t port = 0;           ///< 0: the kernel chooses; see Listener::port()
  std::chrono::steady_clock::duration handshake_within = std::chrono::seconds(5);
  std::size_t handshakes_max = 512;
  std::size_t links_max = 256;
  std::vector<Role> roles{Role::root, Role::relay};  ///< whom to let in
};

class Listener {
 public:
  /// Called on the handlers' executor; the link is not started yet: start() it or close() it.
  using OnLink = std::function<void(std::shared_ptr<Link>, PeerIdentity)>;
  using Counts = std::array<std::uint64_t, refusal_count>;

  /// Binds and listens, so that a taken port is an error here. Links come after start().
  [[nodiscard]] static codec::Checked<std::shared_ptr<Listener>> open(LinkEnvironment environment,
                                                                      std::shared_ptr<TlsContext> tls,
                                                                      ListenerConfig config);
  virtual ~Listener() = default;

  virtual void start(OnLink on_link) = 0;
  /// No more links; established ones live on. Handshakes under way are dropped. Idempotent.
  virtual void stop() = 0;

  [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
  /// By Refusal: connections that did not become links.
  [[nodiscard]] virtual Counts refused() const = 0;
  [[nodiscard]] virtual std::size_t handshakes() const = 0;
};

}  // namespace deltarelay::relay::net
