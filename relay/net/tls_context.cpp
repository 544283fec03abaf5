// Certificates into a context of Asio's, once at start and again at each reload.
//
// Dates are not judged here: a daemon with an expired certificate, or a clock that is wrong, should start, say so
// (expires()) and be refused by its peers with that reason, rather than not be there at all.
#include "relay/net/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>

#include "codec/signature.hpp"
#include "relay/net/net_error.hpp"
#include "relay/net/tls_stream.hpp"
#include "relay/net/x509.hpp"

namespace deltarelay::relay::net {
namespace {

using codec::Checked;
using codec::Failure;
namespace fs = std::filesystem;
using StoreContext = std::unique_ptr<X509_STORE_CTX, FreeWith<&X509_STORE_CTX_free>>;

Failure failure(net_errc code, const fs::path& path) {
  return Failure{code, path.string(), take_openssl_error()};
}

void harden(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  // All three are sound; the first is the quickest where the processor has AES.
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  // A resumed session would skip the check of the certificate: revocation and expiry must hold for each connection.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

/// OpenSSL says "no such file" for whatever it cannot open; the operating system says more.
Checked<void> must_be_readable(const fs::path& path) {
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (file != nullptr) return {};
  const int error = errno;
  ERR_clear_error();
  return Failure{net_errc::file_unreadable, path.string(), std::strerror(error)};
}

Checked<void> add_revocations(X509_STORE* store, const fs::path& path) {
  if (auto readable = must_be_readable(path); !readable) return readable.error();
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) return failure(net_errc::file_unreadable, path);
  std::size_t count = 0;
  for (;; ++count) {
    const CrlPtr crl(PEM_read_bio_X509_CRL(file.get(), nullptr, nullptr, nullptr));
    if (crl == nullptr) break;
    if (X509_STORE_add_crl(store, crl.get()) != 1) return failure(net_errc::crl_invalid, path);
  }
  // The end of the file shows as "no start line"; anything else is damage that must not pass as a shorter list.
  const unsigned long last = ERR_peek_last_error();
  if (count == 0 || (last != 0 && ERR_GET_REASON(last) != PEM_R_NO_START_LINE))
    return failure(net_errc::crl_invalid, path);
  ERR_clear_error();
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return {};
}

/// The chain alone; neither dates nor revocation.
bool chains_to(X509_STORE* store, X509* certificate, STACK_OF(X509) * intermediates) {
  const StoreContext check(X509_STORE_CTX_new());
  if (check == nullptr || X509_STORE_CTX_init(check.get(), store, certificate, intermediates) != 1)
    throw std::bad_alloc();
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_clear_flags(parameters, X509_V_FLAG_CRL_CHECK);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_NO_CHECK_TIME);
  const bool good = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  return good;
}

Checked<std::shared_ptr<TlsContext::Set>> read_set(const TlsPaths& paths) {
  auto set = std::make_shared<TlsContext::Set>();
  SSL_CTX* context = set->context.native_handle();
  harden(context);

  if (auto readable = must_be_readable(paths.certificate); !readable) return readable.error();
  if (SSL_CTX_use_certificate_chain_file(context, paths.certificate.c_str()) != 1)
    return failure(net_errc::certificate_invalid, paths.certificate);
  X509* certificate = SSL_CTX_get0_certificate(context);

  auto key = read_private_key(paths.key);
  if (!key) return key.error();
  if (X509_check_private_key(certificate, key->get()) != 1) {
    ERR_clear_error();
    return Failure{net_errc::key_mismatch, paths.key.string(), "the certificate is " + paths.certificate.string()};
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1) return failure(net_errc::key_invalid, paths.key);

  if (auto readable = must_be_readable(paths.ca); !readable) return readable.error();
  if (SSL_CTX_load_verify_file(context, paths.ca.c_str()) != 1) return failure(net_errc::certificate_invalid, paths.ca);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  STACK_OF(X509)* intermediates = nullptr;
  SSL_CTX_get0_chain_certs(context, &intermediates);
  if (!chains_to(store, certificate, intermediates))
    return Failure{net_errc::untrusted, paths.certificate.string(), "the authority is " + paths.ca.string()};
  if (!paths.crl.empty()) {
    if (auto added = add_revocations(store, paths.crl); !added) return added.error();
  }

  auto identity = identity_of(*certificate);
  if (!identity) return Failure{net_errc::identity_invalid, paths.certificate.string(), ""};
  set->identity = std::move(*identity);
  set->expires = time_of(*X509_get0_notAfter(certificate));
  ERR_clear_error();
  return set;
}

}  // namespace

codec::Checked<codec::MeshId> mesh_id_of(const fs::path& ca, const std::string& mesh) {
  auto certificate = read_certificate(ca);
  if (!certificate) return certificate.error();
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate->get()), &der);
  if (size <= 0) return failure(net_errc::certificate_invalid, ca);
  std::vector<std::byte> text(static_cast<std::size_t>(size) + mesh.size());
  std::memcpy(text.data(), der, static_cast<std::size_t>(size));
  OPENSSL_free(der);
  if (!mesh.empty()) std::memcpy(text.data() + size, mesh.data(), mesh.size());
  const codec::Sha256 digest = codec::sha256_of(text);
  codec::MeshId out;
  std::memcpy(out.bytes.data(), digest.data(), out.bytes.size());
  return out;
}

struct TlsContext::Guarded {
  mutable std::mutex mutex;
  std::shared_ptr<Set> set;
};

TlsContext::TlsContext(TlsPaths paths) : paths_(std::move(paths)), guarded_(std::make_unique<Guarded>()) {}
TlsContext::~TlsContext() = default;

codec::Checked<std::shared_ptr<TlsContext>> TlsContext::load(TlsPaths paths) {
  auto set = read_set(paths);
  if (!set) return set.error();
  auto mesh_id = mesh_id_of(paths.ca, (*set)->identity.mesh);
  if (!mesh_id) return mesh_id.error();
  std::shared_ptr<TlsContext> out(new TlsContext(std::move(paths)));
  out->identity_ = (*set)->identity;
  out->mesh_id_ = *mesh_id;
  out->guarded_->set = std::move(*set);
  return out;
}

codec::Checked<void> TlsContext::reload() {
  auto set = read_set(paths_);
  if (!set) return set.error();
  if ((*set)->identity != identity_) {
    return Failure{net_errc::identity_changed, paths_.certificate.string(),
                   "it is of " + (*set)->identity.uri() + ", this is " + identity_.uri()};
  }
  const std::lock_guard lock(guarded_->mutex);
  guarded_->set = std::move(*set);
  return {};
}

std::chrono::system_clock::time_point TlsContext::expires() const {
  return current()->expires;
}

std::shared_ptr<TlsContext::Set> TlsContext::current() const {
  const std::lock_guard lock(guarded_->mutex);
  return guarded_->set;
}

}  // namespace deltarelay::relay::net
