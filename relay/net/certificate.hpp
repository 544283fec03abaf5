// Makes and reads the certificates of a mesh: one authority, one certificate per node, the content key.
//
// Offline; what `relayctl cert` does. Files are created, never overwritten; private keys have mode 0600. ECDSA P-256:
// small, quick in TLS 1.3, and every tool reads it.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codec/errc.hpp"
#include "relay/net/peer_identity.hpp"

namespace deltarelay::relay::net {

/// Writes ca.key, ca.crt, content.key and content.pub into `dir`, which is made if it is not there.
[[nodiscard]] codec::Checked<void> init_ca(const std::filesystem::path& dir, const std::string& mesh);

inline constexpr int valid_days_max = 3650;

struct CertificateOrder {
  std::string node;
  Role role = Role::relay;
  int valid_days = 365;  ///< 1 to valid_days_max
  /// Start of validity; by default an hour before now, for hosts whose clocks lag.
  std::optional<std::chrono::system_clock::time_point> valid_from;
};

/// Signs a certificate with the authority in `ca_dir` and writes node.crt, node.key, ca.crt and content.pub into `out_dir`.
[[nodiscard]] codec::Checked<void> issue(const std::filesystem::path& ca_dir, const CertificateOrder& order,
                                         const std::filesystem::path& out_dir);

struct CertificateInfo {
  std::string subject, issuer, serial;
  std::string mesh_of_ca;                ///< of an authority: the mesh's name
  std::optional<PeerIdentity> identity;  ///< of a node
  std::vector<std::string> dns_names;
  std::chrono::system_clock::time_point valid_from, valid_until;
  std::string sha256;  ///< fingerprint, hex
  bool is_ca = false;
};

/// The first certificate of a PEM file.
[[nodiscard]] codec::Checked<CertificateInfo> inspect(const std::filesystem::path& certificate);

}  // namespace deltarelay::relay::net
