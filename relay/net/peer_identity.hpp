// Who is at the other end, as its certificate says, and what may be wrong with that.
//
// One URI:deltarelay://<mesh>/<role>/<node> and a DNS:<node> in the subject alternative names. Values; no I/O.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deltarelay::relay::net {

enum class Role : std::uint8_t { root, relay, operator_, observer };

/// "root", "relay", "operator", "observer".
[[nodiscard]] std::string_view to_string(Role role) noexcept;
[[nodiscard]] std::optional<Role> role_from(std::string_view text) noexcept;

struct PeerIdentity {
  std::string mesh;  ///< the mesh's name
  Role role{};
  std::string node;
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;

  [[nodiscard]] std::string uri() const;
};

/// Names of meshes and nodes: 1 to 63 of a-z A-Z 0-9 . _ -, the first one a letter or digit. They stand in URIs, file names
/// and logs, so nothing else is let in.
[[nodiscard]] bool is_valid_name(std::string_view name) noexcept;

/// Strict: exactly deltarelay://<mesh>/<role>/<node>.
[[nodiscard]] std::optional<PeerIdentity> parse_identity_uri(std::string_view uri);

/// Why a connection did not become a link; one cause, one code. code() is what logs and metrics say.
enum class Refusal : std::uint8_t {
  none,
  // before TLS
  resolve_failed,        ///< the name has no address (now)
  resolve_timeout,
  connect_failed,        ///< refused, unreachable
  connect_timeout,       ///< no answer to TCP
  too_many_handshakes,
  too_many_connections,
  // TLS
  handshake_timeout,     ///< connected, then said nothing or too little
  closed_in_handshake,
  not_tls,               ///< HTTP or other bytes
  version_unsupported,   ///< TLS 1.2 or older
  refused_by_peer,       ///< the peer sent an alert; the detail says which
  handshake_failed,      ///< any other failure of TLS
  // the peer's certificate
  no_certificate,
  unknown_ca,
  expired,
  not_yet_valid,
  revoked,
  bad_certificate,       ///< any other failure of the chain
  no_identity,           ///< not exactly one deltarelay URI, or no DNS name equal to its node
  wrong_mesh,
  wrong_name,            ///< not the node that was dialled
  wrong_role,
  // ours
  stopped,
};
inline constexpr std::size_t refusal_count = static_cast<std::size_t>(Refusal::stopped) + 1;
[[nodiscard]] std::string_view code(Refusal refusal) noexcept;

}  // namespace deltarelay::relay::net
