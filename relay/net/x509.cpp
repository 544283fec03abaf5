#include "relay/net/x509.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "relay/net/net_error.hpp"

namespace deltarelay::relay::net {
namespace {

using codec::Checked;
using codec::Failure;

// A daemon has no terminal to ask at.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

Checked<BioPtr> open_for_reading(const std::filesystem::path& path) {
  errno = 0;
  BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) {
    const int error = errno;
    ERR_clear_error();
    return Failure{net_errc::file_unreadable, path.string(), std::strerror(error)};
  }
  return file;
}

}  // namespace

Checked<CertificatePtr> read_certificate(const std::filesystem::path& path) {
  auto file = open_for_reading(path);
  if (!file) return file.error();
  CertificatePtr certificate(PEM_read_bio_X509(file->get(), nullptr, no_pass_phrase, nullptr));
  std::string why = take_openssl_error();
  if (certificate == nullptr) return Failure{net_errc::certificate_invalid, path.string(), std::move(why)};
  return certificate;
}

Checked<KeyPtr> read_private_key(const std::filesystem::path& path) {
  auto file = open_for_reading(path);
  if (!file) return file.error();
  KeyPtr key(PEM_read_bio_PrivateKey(file->get(), nullptr, no_pass_phrase, nullptr));
  std::string why = take_openssl_error();
  if (key == nullptr) return Failure{net_errc::key_invalid, path.string(), std::move(why)};
  return key;
}

AlternativeNames alternative_names_of(const X509& certificate) {
  AlternativeNames out;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) {
    ERR_clear_error();
    return out;
  }
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int kind = 0;
    const auto* value = static_cast<const ASN1_IA5STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind));
    if (kind != GEN_URI && kind != GEN_DNS) continue;
    std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                     static_cast<std::size_t>(ASN1_STRING_length(value)));
    if (text.find('\0') != std::string::npos) continue;
    (kind == GEN_URI ? out.uris : out.dns).push_back(std::move(text));
  }
  GENERAL_NAMES_free(names);
  return out;
}

std::optional<PeerIdentity> identity_of(const X509& certificate) {
  const AlternativeNames names = alternative_names_of(certificate);
  const auto is_ours = [](const std::string& uri) { return uri.rfind(identity_scheme, 0) == 0; };
  if (std::count_if(names.uris.begin(), names.uris.end(), is_ours) != 1) return std::nullopt;
  auto identity = parse_identity_uri(*std::find_if(names.uris.begin(), names.uris.end(), is_ours));
  if (!identity || std::find(names.dns.begin(), names.dns.end(), identity->node) == names.dns.end()) return std::nullopt;
  return identity;
}

std::optional<std::string> mesh_of_authority(const X509& certificate) {
  const AlternativeNames names = alternative_names_of(certificate);
  if (names.uris.size() != 1 || names.uris.front().rfind(identity_scheme, 0) != 0) return std::nullopt;
  std::string mesh = names.uris.front().substr(identity_scheme.size());
  if (!is_valid_name(mesh)) return std::nullopt;
  return mesh;
}

std::chrono::system_clock::time_point time_of(const ASN1_TIME& time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(&time, &fields) != 1) return {};
  return std::chrono::system_clock::from_time_t(timegm(&fields));
}

}  // namespace deltarelay::relay::net
