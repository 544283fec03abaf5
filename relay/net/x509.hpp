// The few things of OpenSSL's X.509 that relay/net uses, with owners. Internal to relay/net: its .cpp files only.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/errc.hpp"
#include "relay/net/peer_identity.hpp"

namespace deltarelay::relay::net {

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
using BioPtr = std::unique_ptr<BIO, FreeWith<&BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<&EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, FreeWith<&X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, FreeWith<&X509_CRL_free>>;

inline constexpr std::string_view identity_scheme = "deltarelay://";

/// The first certificate of a PEM file.
[[nodiscard]] codec::Checked<CertificatePtr> read_certificate(const std::filesystem::path& path);
/// Never asks for a pass phrase.
[[nodiscard]] codec::Checked<KeyPtr> read_private_key(const std::filesystem::path& path);

struct AlternativeNames {
  std::vector<std::string> uris, dns;
};
/// Subject alternative names of the kinds that are used here. A name with a NUL byte in it is left out.
[[nodiscard]] AlternativeNames alternative_names_of(const X509& certificate);

/// Which node the certificate is for; nullopt unless there is exactly one deltarelay URI, well formed, and a DNS name
/// that equals its node.
[[nodiscard]] std::optional<PeerIdentity> identity_of(const X509& certificate);

/// The mesh's name in an authority made by init_ca(): its one URI is deltarelay://<mesh>.
[[nodiscard]] std::optional<std::string> mesh_of_authority(const X509& certificate);

[[nodiscard]] std::chrono::system_clock::time_point time_of(const ASN1_TIME& time);

}  // namespace deltarelay::relay::net
