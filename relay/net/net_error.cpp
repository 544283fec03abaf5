#include "relay/net/net_error.hpp"

#include <openssl/err.h>

#include <array>

namespace deltarelay::relay::net {
namespace {

class NetCategory final : public boost::system::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "deltarelay.net"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<net_errc>(value)) {
      case net_errc::ok: return "success";
      case net_errc::file_unreadable: return "the file cannot be read";
      case net_errc::already_exists: return "the file exists and is not overwritten";
      case net_errc::write_failed: return "the file cannot be written";
      case net_errc::name_invalid: return "not a valid name (1 to 63 of a-z A-Z 0-9 . _ -, first a letter or digit)";
      case net_errc::value_invalid: return "value out of range";
      case net_errc::certificate_invalid: return "not a usable PEM certificate";
      case net_errc::key_invalid: return "not a PEM private key without a pass phrase";
      case net_errc::key_mismatch: return "the private key does not belong to the certificate";
      case net_errc::untrusted: return "the certificate was not issued by this authority";
      case net_errc::identity_invalid:
        return "the certificate needs exactly one URI:deltarelay://MESH/ROLE/NODE and DNS:NODE; make one with `relayctl "
               "cert issue`";
      case net_errc::identity_changed: return "the certificate is of another node, role or mesh; restart to change that";
      case net_errc::crl_invalid: return "not a PEM certificate revocation list";
      case net_errc::listen_failed: return "cannot listen on the address";
      case net_errc::library_failed: return "OpenSSL failed";
    }
    return "unknown network error";
  }
};

}  // namespace

const boost::system::error_category& net_category() noexcept {
  static const NetCategory category;
  return category;
}

std::string take_openssl_error() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return {};
  std::array<char, 256> text{};
  ERR_error_string_n(error, text.data(), text.size());
  return text.data();
}

}  // namespace deltarelay::relay::net
