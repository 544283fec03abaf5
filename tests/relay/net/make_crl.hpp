// Revocation lists for tests: what an operator makes with `openssl ca -gencrl`.
#pragma once

#include <doctest/doctest.h>
#include <openssl/pem.h>

#include <filesystem>
#include <vector>

#include "relay/net/x509.hpp"

namespace deltarelay::tests {

/// Writes a list, signed by the authority in `ca_dir`, that revokes `certificates`.
inline void make_crl(const std::filesystem::path& ca_dir, const std::vector<std::filesystem::path>& certificates,
                     const std::filesystem::path& out) {
  using namespace relay::net;
  const auto ca = read_certificate(ca_dir / "ca.crt");
  const auto key = read_private_key(ca_dir / "ca.key");
  REQUIRE((ca.has_value() && key.has_value()));
  const CrlPtr crl(X509_CRL_new());
  using TimePtr = std::unique_ptr<ASN1_TIME, FreeWith<&ASN1_TIME_free>>;
  const TimePtr before(ASN1_TIME_adj(nullptr, std::time(nullptr), 0, -3600));
  const TimePtr after(ASN1_TIME_adj(nullptr, std::time(nullptr), 1, 0));
  REQUIRE(X509_CRL_set_version(crl.get(), 1) == 1);
  REQUIRE(X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(ca->get())) == 1);
  REQUIRE(X509_CRL_set1_lastUpdate(crl.get(), before.get()) == 1);
  REQUIRE(X509_CRL_set1_nextUpdate(crl.get(), after.get()) == 1);
  for (const auto& path : certificates) {
    const auto certificate = read_certificate(path);
    REQUIRE(certificate.has_value());
    X509_REVOKED* revoked = X509_REVOKED_new();
    REQUIRE(X509_REVOKED_set_serialNumber(revoked, X509_get_serialNumber(certificate->get())) == 1);
    REQUIRE(X509_REVOKED_set_revocationDate(revoked, before.get()) == 1);
    REQUIRE(X509_CRL_add0_revoked(crl.get(), revoked) == 1);
  }
  REQUIRE(X509_CRL_sort(crl.get()) == 1);
  REQUIRE(X509_CRL_sign(crl.get(), key->get(), EVP_sha256()) > 0);
  const BioPtr file(BIO_new_file(out.c_str(), "w"));
  REQUIRE(file != nullptr);
  REQUIRE(PEM_write_bio_X509_CRL(file.get(), crl.get()) == 1);
}

}  // namespace deltarelay::tests
