// SHA-256 and Ed25519 by OpenSSL 3's EVP interface; the keys as PEM files.
//
// An EVP_PKEY that nobody changes may be used by many threads; every call makes its own EVP_MD_CTX.
#include "codec/signature.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace deltarelay::codec {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

struct FreeBio {
  void operator()(BIO* bio) const noexcept { BIO_free_all(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

using Key = std::shared_ptr<void>;
Key own(EVP_PKEY* key) {
  return Key(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
}
EVP_PKEY* pkey(const Key& key) noexcept {
  return static_cast<EVP_PKEY*>(key.get());
}
const unsigned char* uchars(const std::byte* p) noexcept {
  return reinterpret_cast<const unsigned char*>(p);
}
unsigned char* uchars(std::byte* p) noexcept {
  return reinterpret_cast<unsigned char*>(p);
}

// OpenSSL refuses these calls only when it cannot get memory or was built without the algorithm.
void must(bool condition) {
  if (!condition) throw std::bad_alloc();
}

using ReadPem = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

// Never asks a terminal for a pass phrase: a daemon has none.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

Checked<Key> load_key(const std::filesystem::path& path, ReadPem read, const char* kind) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) {
    ERR_clear_error();
    return Failure{errc::io_error, path.string(), std::string("cannot open the file: ") + std::strerror(errno)};
  }
  Key key = own(read(file.get(), nullptr, no_pass_phrase, nullptr));
  ERR_clear_error();
  if (key == nullptr || EVP_PKEY_get_base_id(pkey(key)) != EVP_PKEY_ED25519) {
    return Failure{errc::key_invalid, path.string(), std::string("expected an Ed25519 ") + kind};
  }
  return key;
}

using WritePem = int (*)(BIO*, const EVP_PKEY*);

Checked<void> write_new_file(const std::filesystem::path& path, int mode, const EVP_PKEY* key, WritePem write) {
  const auto failed = [&](const char* what, int error) {
    return Failure{errc::io_error, path.string(), std::string(what) + ": " + std::strerror(error)};
  };
  const Bio memory(BIO_new(BIO_s_mem()));
  must(memory != nullptr && write(memory.get(), key) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);

  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return failed("cannot create the key file (an existing one is never overwritten)", errno);
  const bool written = ::write(fd, data, static_cast<std::size_t>(size)) == size && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (!written) {
    ::unlink(path.c_str());
    return failed("cannot write the key file", error);
  }
  return {};
}

}  // namespace

Sha256 sha256_of(Bytes data) {
  Sha256 out;
  must(EVP_Digest(data.data(), data.size(), uchars(out.data()), nullptr, EVP_sha256(), nullptr) == 1);
  return out;
}

Checked<ContentVerifier> ContentVerifier::load(const std::filesystem::path& public_key_pem) {
  auto key = load_key(public_key_pem, PEM_read_bio_PUBKEY, "public key");
  if (!key) return key.error();
  ContentVerifier out;
  out.key_ = std::move(*key);
  return out;
}

bool ContentVerifier::verify(Bytes message, const Signature& signature) const noexcept {
  if (key_ == nullptr) return false;
  const Context context(EVP_MD_CTX_new());
  if (context == nullptr) return false;
  const bool good = EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, pkey(key_)) == 1 &&
                    EVP_DigestVerify(context.get(), uchars(signature.data()), signature.size(), uchars(message.data()),
                                     message.size()) == 1;
  // A failed verification leaves entries in the thread's queue, where a later TLS call would find them.
  if (!good) ERR_clear_error();
  return good;
}

Checked<ContentSigner> ContentSigner::load(const std::filesystem::path& private_key_pem) {
  auto key = load_key(private_key_pem, PEM_read_bio_PrivateKey, "private key without a pass phrase");
  if (!key) return key.error();
  ContentSigner out;
  out.key_ = std::move(*key);
  return out;
}

Checked<void> ContentSigner::generate(const std::filesystem::path& private_key_pem,
                                      const std::filesystem::path& public_key_pem) {
  const Key key = own(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  must(key != nullptr);
  auto made = write_new_file(private_key_pem, 0600, pkey(key), [](BIO* bio, const EVP_PKEY* k) {
    return PEM_write_bio_PKCS8PrivateKey(bio, k, nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (!made) return made;
  made = write_new_file(public_key_pem, 0644, pkey(key),
                        [](BIO* bio, const EVP_PKEY* k) { return PEM_write_bio_PUBKEY(bio, k); });
  // Half a pair is of no use and would block the next attempt.
  if (!made) ::unlink(private_key_pem.c_str());
  return made;
}

Signature ContentSigner::sign(Bytes message) const {
  const Context context(EVP_MD_CTX_new());
  must(key_ != nullptr && context != nullptr);
  Signature out;
  std::size_t size = out.size();
  must(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, pkey(key_)) == 1 &&
       EVP_DigestSign(context.get(), uchars(out.data()), &size, uchars(message.data()), message.size()) == 1 &&
       size == out.size());
  return out;
}

ContentVerifier ContentSigner::verifier() const {
  ContentVerifier out;
  out.key_ = key_;
  return out;
}

}  // namespace deltarelay::codec
