#include "relay/net/peer_identity.hpp"

#include <algorithm>
#include <array>

namespace deltarelay::relay::net {
namespace {

constexpr std::string_view scheme = "deltarelay://";
constexpr std::size_t name_bytes_max = 63;
constexpr std::array<std::string_view, 4> role_names{"root", "relay", "operator", "observer"};

bool is_letter_or_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string_view to_string(Role role) noexcept {
  return role_names.at(static_cast<std::size_t>(role));
}

std::optional<Role> role_from(std::string_view text) noexcept {
  const auto found = std::find(role_names.begin(), role_names.end(), text);
  if (found == role_names.end()) return std::nullopt;
  return static_cast<Role>(found - role_names.begin());
}

std::string PeerIdentity::uri() const {
  std::string out(scheme);
  out.append(mesh).append("/").append(to_string(role)).append("/").append(node);
  return out;
}

bool is_valid_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= name_bytes_max && is_letter_or_digit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

std::optional<PeerIdentity> parse_identity_uri(std::string_view uri) {
  if (uri.substr(0, scheme.size()) != scheme) return std::nullopt;
  uri.remove_prefix(scheme.size());
  const std::size_t first = uri.find('/');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = uri.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view mesh = uri.substr(0, first);
  const std::string_view node = uri.substr(second + 1);
  const auto role = role_from(uri.substr(first + 1, second - first - 1));
  if (!role || !is_valid_name(mesh) || !is_valid_name(node)) return std::nullopt;
  return PeerIdentity{std::string(mesh), *role, std::string(node)};
}

std::string_view code(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::none: return "none";
    case Refusal::resolve_failed: return "resolve_failed";
    case Refusal::resolve_timeout: return "resolve_timeout";
    case Refusal::connect_failed: return "connect_failed";
    case Refusal::connect_timeout: return "connect_timeout";
    case Refusal::too_many_handshakes: return "too_many_handshakes";
    case Refusal::too_many_connections: return "too_many_connections";
    case Refusal::handshake_timeout: return "handshake_timeout";
    case Refusal::closed_in_handshake: return "closed_in_handshake";
    case Refusal::not_tls: return "not_tls";
    case Refusal::version_unsupported: return "version_unsupported";
    case Refusal::refused_by_peer: return "refused_by_peer";
    case Refusal::handshake_failed: return "handshake_failed";
    case Refusal::no_certificate: return "no_certificate";
    case Refusal::unknown_ca: return "unknown_ca";
    case Refusal::expired: return "expired";
    case Refusal::not_yet_valid: return "not_yet_valid";
    case Refusal::revoked: return "revoked";
    case Refusal::bad_certificate: return "bad_certificate";
    case Refusal::no_identity: return "no_identity";
    case Refusal::wrong_mesh: return "wrong_mesh";
    case Refusal::wrong_name: return "wrong_name";
    case Refusal::wrong_role: return "wrong_role";
    case Refusal::stopped: return "stopped";
  }
  return "unknown";
}

}  // namespace deltarelay::relay::net
