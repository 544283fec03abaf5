// From the error codes of Asio and OpenSSL to the reason for which a link ended. Internal to relay/net.
#pragma once

#include <boost/system/error_code.hpp>

#include "relay/net/link.hpp"

namespace deltarelay::relay::net {

/// The peer sent a TLS alert other than close_notify.
[[nodiscard]] bool is_peer_alert(const boost::system::error_code& error) noexcept;

/// `inside_record`: some bytes of a record had come, or a write was unfinished. Not for cancelled operations.
[[nodiscard]] LinkEnd link_end_of(const boost::system::error_code& error, bool inside_record);

}  // namespace deltarelay::relay::net
