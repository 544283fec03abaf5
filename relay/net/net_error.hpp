// What relay/net refuses outside of connections: files, names, addresses. Connections have Refusal and EndReason.
#pragma once

#include <boost/system/error_code.hpp>
#include <string>

#include "codec/errc.hpp"

namespace deltarelay::relay::net {

enum class net_errc {
  ok = 0,
  file_unreadable,      ///< missing, no permission, or not a file
  already_exists,       ///< a file that would have to be overwritten
  write_failed,         ///< the operating system refused to create or write a file
  name_invalid,         ///< not a name of a mesh or node
  value_invalid,        ///< an argument out of its range
  certificate_invalid,  ///< not a PEM certificate, or not one of the kind that is needed
  key_invalid,          ///< not a PEM private key, or one with a pass phrase
  key_mismatch,         ///< the key is not the certificate's
  untrusted,            ///< the certificate does not chain to the authority
  identity_invalid,     ///< the certificate does not say which node of which mesh it is for
  identity_changed,     ///< reload() found another node's certificate
  crl_invalid,          ///< not a PEM revocation list
  listen_failed,        ///< the address cannot be bound
  library_failed,       ///< OpenSSL failed for no fault of the input
};

[[nodiscard]] const boost::system::error_category& net_category() noexcept;
[[nodiscard]] inline boost::system::error_code make_error_code(net_errc e) noexcept {
  return {static_cast<int>(e), net_category()};
}

/// The oldest entry of OpenSSL's queue as text, and the queue emptied; "" when there is none.
[[nodiscard]] std::string take_openssl_error();

}  // namespace deltarelay::relay::net

template <>
struct boost::system::is_error_code_enum<deltarelay::relay::net::net_errc> : std::true_type {};
