// Certificates by OpenSSL 3. Every step that can only fail for want of memory throws bad_alloc through must(); what an
// operator can cause (names, files) is a Failure.
#include "relay/net/certificate.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "codec/signature.hpp"
#include "relay/net/net_error.hpp"
#include "relay/net/x509.hpp"

namespace deltarelay::relay::net {
namespace {

using codec::Checked;
using codec::Failure;
using Clock = std::chrono::system_clock;
namespace fs = std::filesystem;

constexpr int ca_valid_days = 3650;

void must(bool condition) {
  if (!condition) throw std::bad_alloc();
}

/// Files made by one call; taken away again unless the call succeeds, so that it can simply be repeated.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  ~NewFiles() {
    std::error_code ignored;
    for (const fs::path& path : made_) fs::remove(path, ignored);
  }
  void note(fs::path path) { made_.push_back(std::move(path)); }
  void keep() noexcept { made_.clear(); }

  [[nodiscard]] Checked<void> write(const fs::path& path, mode_t mode, std::string_view content) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
      const int error = errno;
      return Failure{error == EEXIST ? net_errc::already_exists : net_errc::write_failed, path.string(),
                     std::strerror(error)};
    }
    note(path);
    const bool written =
        ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) && ::fsync(fd) == 0;
    const int error = errno;
    ::close(fd);
    if (!written) return Failure{net_errc::write_failed, path.string(), std::strerror(error)};
    return {};
  }

 private:
  std::vector<fs::path> made_;
};

Checked<void> make_directory(const fs::path& dir) {
  std::error_code failed;
  fs::create_directories(dir, failed);
  if (failed) return Failure{net_errc::write_failed, dir.string(), failed.message()};
  return {};
}

Checked<void> refuse_existing(const fs::path& dir, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::error_code ignored;
    if (fs::symlink_status(dir / name, ignored).type() != fs::file_type::not_found) {
      return Failure{net_errc::already_exists, (dir / name).string(), "choose another directory or move it away"};
    }
  }
  return {};
}

std::string text_in(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  must(memory != nullptr && PEM_write_bio_X509(memory.get(), certificate) == 1);
  return text_in(memory.get());
}

std::string pem_of(EVP_PKEY* key) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  must(memory != nullptr && PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_in(memory.get());
}

std::string text_of(const X509_NAME* name) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  must(memory != nullptr && X509_NAME_print_ex(memory.get(), name, 0, XN_FLAG_RFC2253) >= 0);
  return text_in(memory.get());
}

std::string hex_of(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

void set_time(ASN1_TIME* field, Clock::time_point time) {
  must(ASN1_TIME_set(field, Clock::to_time_t(time)) != nullptr);
}

void set_random_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  must(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive, and of one length
  BIGNUM* number = BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr);
  must(number != nullptr);
  const bool set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  must(set);
}

void set_common_name(X509* certificate, const std::string& text) {
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()),
                                  -1, 0) == 1);
}

/// `value` in the syntax of x509v3_config(5); nothing in it comes from outside but names that is_valid_name() let in.
void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  must(extension != nullptr);
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  must(added);
}

CertificatePtr blank(EVP_PKEY* key, Clock::time_point from, std::chrono::hours valid) {
  CertificatePtr out(X509_new());
  must(out != nullptr && X509_set_version(out.get(), X509_VERSION_3) == 1 && X509_set_pubkey(out.get(), key) == 1);
  set_random_serial(out.get());
  set_time(X509_getm_notBefore(out.get()), from);
  set_time(X509_getm_notAfter(out.get()), from + valid);
  return out;
}

/// A common name is limited to 64 characters by X.520.
std::string common_name(const std::string& text) {
  return text.substr(0, 64);
}

CertificatePtr make_authority(EVP_PKEY* key, const std::string& mesh) {
  CertificatePtr out = blank(key, Clock::now() - std::chrono::hours(1), std::chrono::hours(24 * ca_valid_days));
  set_common_name(out.get(), common_name("Deltarelay CA " + mesh));
  must(X509_set_issuer_name(out.get(), X509_get_subject_name(out.get())) == 1);
  add_extension(out.get(), out.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(out.get(), out.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(out.get(), out.get(), NID_subject_key_identifier, "hash");
  add_extension(out.get(), out.get(), NID_subject_alt_name, "URI:" + std::string(identity_scheme) + mesh);
  must(X509_sign(out.get(), key, EVP_sha256()) > 0);
  return out;
}

CertificatePtr make_node(EVP_PKEY* key, X509* ca, EVP_PKEY* ca_key, const PeerIdentity& identity,
                         const CertificateOrder& order) {
  const auto from = order.valid_from.value_or(Clock::now() - std::chrono::hours(1));
  CertificatePtr out = blank(key, from, std::chrono::hours(24 * order.valid_days));
  set_common_name(out.get(), common_name(identity.node));
  must(X509_set_issuer_name(out.get(), X509_get_subject_name(ca)) == 1);
  add_extension(out.get(), ca, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(out.get(), ca, NID_key_usage, "critical,digitalSignature");
  add_extension(out.get(), ca, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(out.get(), ca, NID_subject_key_identifier, "hash");
  add_extension(out.get(), ca, NID_authority_key_identifier, "keyid");
  add_extension(out.get(), ca, NID_subject_alt_name, "URI:" + identity.uri() + ",DNS:" + identity.node);
  must(X509_sign(out.get(), ca_key, EVP_sha256()) > 0);
  return out;
}

KeyPtr make_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  must(key != nullptr);
  return key;
}

Checked<std::string> read_text(const fs::path& path) {
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) {
    ERR_clear_error();
    return Failure{net_errc::file_unreadable, path.string(), std::strerror(errno)};
  }
  std::string out;
  std::array<char, 4096> piece{};
  for (int count = 0; (count = BIO_read(file.get(), piece.data(), static_cast<int>(piece.size()))) > 0;)
    out.append(piece.data(), static_cast<std::size_t>(count));
  return out;
}

/// For files that are the same for all nodes: one that is there already must have the same content.
Checked<void> copy_or_compare(NewFiles& files, const fs::path& from, const fs::path& to) {
  auto content = read_text(from);
  if (!content) return content.error();
  std::error_code ignored;
  if (!fs::exists(to, ignored)) return files.write(to, 0644, *content);
  auto there = read_text(to);
  if (!there) return there.error();
  if (*there != *content) return Failure{net_errc::already_exists, to.string(), "it is another than " + from.string()};
  return {};
}

}  // namespace

Checked<void> init_ca(const fs::path& dir, const std::string& mesh) {
  if (!is_valid_name(mesh)) return Failure{net_errc::name_invalid, "mesh \"" + mesh + "\"", ""};
  if (auto made = make_directory(dir); !made) return made.error();
  if (auto free = refuse_existing(dir, {"ca.key", "ca.crt", "content.key", "content.pub"}); !free) return free.error();

  const KeyPtr key = make_key();
  const CertificatePtr certificate = make_authority(key.get(), mesh);
  NewFiles files;
  if (auto ok = files.write(dir / "ca.key", 0600, pem_of(key.get())); !ok) return ok.error();
  if (auto ok = files.write(dir / "ca.crt", 0644, pem_of(certificate.get())); !ok) return ok.error();
  if (auto ok = codec::ContentSigner::generate(dir / "content.key", dir / "content.pub"); !ok) return ok.error();
  files.keep();
  return {};
}

Checked<void> issue(const fs::path& ca_dir, const CertificateOrder& order, const fs::path& out_dir) {
  if (!is_valid_name(order.node)) return Failure{net_errc::name_invalid, "node \"" + order.node + "\"", ""};
  if (order.valid_days < 1 || order.valid_days > valid_days_max)
    return Failure{net_errc::value_invalid, "days", "1 to " + std::to_string(valid_days_max)};
  auto ca = read_certificate(ca_dir / "ca.crt");
  if (!ca) return ca.error();
  auto ca_key = read_private_key(ca_dir / "ca.key");
  if (!ca_key) return ca_key.error();
  if (X509_check_private_key(ca->get(), ca_key->get()) != 1) {
    ERR_clear_error();
    return Failure{net_errc::key_mismatch, (ca_dir / "ca.key").string(), ""};
  }
  const auto mesh = mesh_of_authority(**ca);
  if (!mesh)
    return Failure{net_errc::certificate_invalid, (ca_dir / "ca.crt").string(), "not made by `relayctl cert init-ca`"};
  if (auto made = make_directory(out_dir); !made) return made.error();
  if (auto free = refuse_existing(out_dir, {"node.key", "node.crt"}); !free) return free.error();

  PeerIdentity identity{*mesh, order.role, order.node};
  const KeyPtr key = make_key();
  const CertificatePtr certificate = make_node(key.get(), ca->get(), ca_key->get(), identity, order);
  NewFiles files;
  if (auto ok = files.write(out_dir / "node.key", 0600, pem_of(key.get())); !ok) return ok.error();
  if (auto ok = files.write(out_dir / "node.crt", 0644, pem_of(certificate.get())); !ok) return ok.error();
  if (auto ok = copy_or_compare(files, ca_dir / "ca.crt", out_dir / "ca.crt"); !ok) return ok.error();
  if (auto ok = copy_or_compare(files, ca_dir / "content.pub", out_dir / "content.pub"); !ok) return ok.error();
  files.keep();
  return {};
}

Checked<CertificateInfo> inspect(const fs::path& path) {
  auto certificate = read_certificate(path);
  if (!certificate) return certificate.error();
  X509* x509 = certificate->get();
  CertificateInfo out;
  out.subject = text_of(X509_get_subject_name(x509));
  out.issuer = text_of(X509_get_issuer_name(x509));
  const ASN1_INTEGER* serial = X509_get0_serialNumber(x509);
  out.serial = hex_of(ASN1_STRING_get0_data(serial), static_cast<std::size_t>(ASN1_STRING_length(serial)));
  out.mesh_of_ca = mesh_of_authority(*x509).value_or("");
  out.identity = identity_of(*x509);
  out.dns_names = alternative_names_of(*x509).dns;
  out.valid_from = time_of(*X509_get0_notBefore(x509));
  out.valid_until = time_of(*X509_get0_notAfter(x509));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  must(X509_digest(x509, EVP_sha256(), digest.data(), &size) == 1);
  out.sha256 = hex_of(digest.data(), size);
  out.is_ca = X509_check_ca(x509) == 1;
  return out;
}

}  // namespace deltarelay::relay::net
