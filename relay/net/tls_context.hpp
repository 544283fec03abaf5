// This node's certificate, key and trust, ready for TLS; replaced as a whole by reload() without a restart.
//
// TLS 1.3 only, both sides show certificates, no tickets, no renegotiation. Connections keep the set they began with; new
// ones take the newest. Thread-safe. The stream types of Asio stay out of this header.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "codec/errc.hpp"
#include "codec/types.hpp"
#include "relay/net/peer_identity.hpp"

namespace deltarelay::relay::net {

struct TlsPaths {
  std::filesystem::path certificate;  ///< PEM: this node's certificate, then intermediates
  std::filesystem::path key;          ///< PEM, without a pass phrase
  std::filesystem::path ca;           ///< PEM: the mesh's certificate authority (old and new during a rotation)
  std::filesystem::path crl;          ///< PEM; empty: no revocation list
};

/// First 16 bytes of SHA-256 over the CA's SubjectPublicKeyInfo and the mesh's name: needs no file beside ca.crt, and two
/// meshes of one name differ. With several certificates in the file the first one counts.
[[nodiscard]] codec::Checked<codec::MeshId> mesh_id_of(const std::filesystem::path& ca, const std::string& mesh);

class TlsContext {
 public:
  /// Reads the files and checks that they belong together: key to certificate, certificate to CA, identity in it.
  [[nodiscard]] static codec::Checked<std::shared_ptr<TlsContext>> load(TlsPaths paths);

  /// Reads the same paths again. On failure the old set stays and the reason is returned. The identity must be the same.
  [[nodiscard]] codec::Checked<void> reload();

  [[nodiscard]] const PeerIdentity& identity() const noexcept { return identity_; }
  /// mesh_id_of() this context's CA. Does not change with reload(): a CA is rotated by appending the new one.
  [[nodiscard]] const codec::MeshId& mesh_id() const noexcept { return mesh_id_; }
  /// End of this node's own certificate: for the metric and the CERT_EXPIRES check.
  [[nodiscard]] std::chrono::system_clock::time_point expires() const;

  struct Set;  // defined in tls_stream.hpp
  [[nodiscard]] std::shared_ptr<Set> current() const;

  ~TlsContext();

 private:
  struct Guarded;
  explicit TlsContext(TlsPaths paths);

  TlsPaths paths_;
  PeerIdentity identity_;
  codec::MeshId mesh_id_;
  std::unique_ptr<Guarded> guarded_;
};

}  // namespace deltarelay::relay::net
