#include "relay/net/certificate_check.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>
#include <new>

#include "relay/net/net_error.hpp"
#include "relay/net/x509.hpp"

namespace deltarelay::relay::net {
namespace {

using codec::Checked;
using Clock = std::chrono::system_clock;
namespace fs = std::filesystem;
using StorePtr = std::unique_ptr<X509_STORE, FreeWith<&X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, FreeWith<&X509_STORE_CTX_free>>;

constexpr std::size_t certificates_in_a_file_max = 16;

/// All certificates of a PEM file, at least one.
Checked<std::vector<CertificatePtr>> read_certificates(const fs::path& path) {
  auto first = read_certificate(path);
  if (!first) return first.error();
  std::vector<CertificatePtr> out;
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  while (file != nullptr && out.size() < certificates_in_a_file_max) {
    CertificatePtr next(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    out.push_back(std::move(next));
  }
  ERR_clear_error();
  if (out.empty()) out.push_back(std::move(*first));
  return out;
}

std::string date_text(Clock::time_point time) {
  const std::time_t seconds = Clock::to_time_t(time);
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields)};
}

class Checker {
 public:
  Checker(const std::vector<CertificatePtr>& chain, const std::vector<CertificatePtr>& authorities,
          Clock::time_point now)
      : chain_(chain), authorities_(authorities), now_(now) {}

  void check_times() {
    X509& node = *chain_.front();
    const auto from = time_of(*X509_get0_notBefore(&node)), until = time_of(*X509_get0_notAfter(&node));
    if (now_ >= until) add(Refusal::expired, "the certificate expired on " + date_text(until));
    if (now_ < from) add(Refusal::not_yet_valid, "the certificate is not valid before " + date_text(from));
    for (const CertificatePtr& ca : authorities_) {
      const auto ca_until = time_of(*X509_get0_notAfter(ca.get()));
      if (now_ >= ca_until) findings_.push_back({"ca_expired", "the authority expired on " + date_text(ca_until)});
    }
  }

  /// Whether the chain ends at an authority, for both sides of a connection; times have findings of their own.
  void check_chain() {
    for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
      const int error = verify(purpose);
      if (error == X509_V_OK) continue;
      const std::string why = X509_verify_cert_error_string(error);
      if (error == X509_V_ERR_INVALID_PURPOSE)
        add(Refusal::bad_certificate, "the certificate may not be used by both sides of a connection");
      else if (error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || error == X509_V_ERR_CERT_SIGNATURE_FAILURE ||
               error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN || error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT)
        add(Refusal::unknown_ca, "the certificate was not issued by this authority (" + why + ")");
      else
        add(Refusal::bad_certificate, "the chain does not hold (" + why + ")");
      return;  // the other purpose fails for the same reason
    }
  }

  void check_identity() {
    const auto identity = identity_of(*chain_.front());
    if (!identity) {
      add(Refusal::no_identity,
          "not exactly one URI:deltarelay://MESH/ROLE/NODE with DNS:NODE among the alternative names");
      return;
    }
    for (const CertificatePtr& ca : authorities_) {
      const auto mesh = mesh_of_authority(*ca);
      if (mesh && *mesh != identity->mesh)
        add(Refusal::wrong_mesh, "the certificate is of mesh " + identity->mesh + ", the authority of " + *mesh);
    }
  }

  void check_key(EVP_PKEY& key) {
    if (X509_check_private_key(chain_.front().get(), &key) != 1)
      findings_.push_back({"key_mismatch", "the private key does not belong to the certificate"});
    ERR_clear_error();
  }

  [[nodiscard]] std::vector<CertificateFinding> take() { return std::move(findings_); }

 private:
  void add(Refusal refusal, std::string text) { findings_.push_back({std::string(code(refusal)), std::move(text)}); }

  [[nodiscard]] int verify(int purpose) const {
    const StorePtr store(X509_STORE_new());
    const StoreContextPtr context(X509_STORE_CTX_new());
    STACK_OF(X509)* untrusted = sk_X509_new_null();
    if (store == nullptr || context == nullptr || untrusted == nullptr) throw std::bad_alloc();
    for (const CertificatePtr& ca : authorities_) X509_STORE_add_cert(store.get(), ca.get());
    for (std::size_t i = 1; i < chain_.size(); ++i) sk_X509_push(untrusted, chain_[i].get());
    X509_STORE_CTX_init(context.get(), store.get(), chain_.front().get(), untrusted);
    X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
    X509_STORE_CTX_set_purpose(context.get(), purpose);
    const int good = X509_verify_cert(context.get());
    const int error = X509_STORE_CTX_get_error(context.get());
    sk_X509_free(untrusted);
    ERR_clear_error();
    return good == 1 ? X509_V_OK : error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error;
  }

  const std::vector<CertificatePtr>& chain_;
  const std::vector<CertificatePtr>& authorities_;
  const Clock::time_point now_;
  std::vector<CertificateFinding> findings_;
};

}  // namespace

Checked<std::vector<CertificateFinding>> check_certificate(const fs::path& certificate, const fs::path& key,
                                                           const fs::path& ca, Clock::time_point now) {
  auto chain = read_certificates(certificate);
  if (!chain) return chain.error();
  auto private_key = read_private_key(key);
  if (!private_key) return private_key.error();
  auto authorities = read_certificates(ca);
  if (!authorities) return authorities.error();
  Checker checker(*chain, *authorities, now);
  checker.check_chain();
  checker.check_times();
  checker.check_identity();
  checker.check_key(**private_key);
  return checker.take();
}

}  // namespace deltarelay::relay::net
