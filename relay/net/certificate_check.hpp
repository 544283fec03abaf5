// What is wrong with a node's certificate, key and authority before a daemon is started with them: every finding at
// once, where a handshake would only name the first. Offline; what `relayctl cert check` does.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "codec/errc.hpp"

namespace deltarelay::relay::net {

struct CertificateFinding {
  std::string code;  ///< the word that logs use for a refused handshake (Refusal), or key_mismatch, ca_expired
  std::string text;
};

/// Findings in the order in which a handshake meets them; none: the files may be used at `now`. `ca` may hold several
/// authorities (rotation), `certificate` intermediates behind the node's own. Errors: files that cannot be read or are
/// no PEM.
[[nodiscard]] codec::Checked<std::vector<CertificateFinding>> check_certificate(
    const std::filesystem::path& certificate, const std::filesystem::path& key, const std::filesystem::path& ca,
    std::chrono::system_clock::time_point now);

}  // namespace deltarelay::relay::net
