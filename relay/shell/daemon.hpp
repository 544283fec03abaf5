// From a config file to a running daemon and back: everything is checked before anything is started.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/findings.hpp"
#include "config/relayd_config.hpp"
#include "config/topology_file.hpp"
#include "relay/shell/shell.hpp"

namespace deltarelay::relay {

/// What a config file leads to, once read: the parts that need no state directory.
struct Prepared {
  std::optional<config::RelaydConfig> config;
  std::optional<topology::Model> model;
  std::optional<topology::Plan> plan;
  std::shared_ptr<net::TlsContext> tls;
  std::optional<codec::ContentVerifier> verifier;
  std::optional<codec::ContentSigner> signer;  ///< root only
  config::Findings findings;                   ///< none: all of the above is there
};

/// Reads and checks configuration, topology, certificates, keys and, if there is one, the image's headers. Writes
/// nothing.
[[nodiscard]] Prepared prepare_daemon(const std::filesystem::path& config_file);

/// Runs until SIGTERM or SIGINT; SIGHUP reads certificates and log level again. The exit code: 0, or 1 with a line on
/// stderr when the state directory, the port or the socket cannot be had. REQUIRES that prepared.findings is empty.
[[nodiscard]] int run_daemon(Prepared prepared);

}  // namespace deltarelay::relay
