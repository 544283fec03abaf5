// SHA-256 and Ed25519: the guard against adversaries. Only the root holds the private content key; a relay can drop a
// record but not forge one.
//
// Keys are PEM files (`relayctl cert init-ca` writes content.key, 0600, and content.pub). Thread-safe after construction.
#pragma once

#include <array>
#include <filesystem>
#include <memory>

#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

using Sha256 = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;

[[nodiscard]] Sha256 sha256_of(Bytes data);

class ContentVerifier {
 public:
  [[nodiscard]] static Checked<ContentVerifier> load(const std::filesystem::path& public_key_pem);
  [[nodiscard]] bool verify(Bytes message, const Signature& signature) const noexcept;

 private:
  friend class ContentSigner;
  std::shared_ptr<void> key_;  // EVP_PKEY
};

class ContentSigner {
 public:
  [[nodiscard]] static Checked<ContentSigner> load(const std::filesystem::path& private_key_pem);
  /// Writes a new key pair; refuses to overwrite. The private file has mode 0600.
  [[nodiscard]] static Checked<void> generate(const std::filesystem::path& private_key_pem,
                                              const std::filesystem::path& public_key_pem);
  [[nodiscard]] Signature sign(Bytes message) const;
  [[nodiscard]] ContentVerifier verifier() const;

 private:
  std::shared_ptr<void> key_;
};

}  // namespace deltarelay::codec
