// relayd.yaml as a plain struct: each key once, with unit and default. relayd.example.yaml documents the same keys.
//
// Layer: config. Loading reads the file and nothing else: whether certificates, image and state directory are usable is
// for the daemon to find out. Paths are relative to the directory of the config file and absolute after loading.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "config/findings.hpp"
#include "topology/model.hpp"

namespace deltarelay::config {

enum class Role { root, relay };
enum class LogLevel { trace, debug, info, warn, error };
enum class LogFormat { logfmt, json };
enum class CommitPolicy { all, quorum };
enum class OnTimeout { abort, commit_if_quorum };

struct ImageConfig {
  std::filesystem::path dir;
  std::uint64_t block_bytes = 1024 * 1024;  ///< key block_size; power of two, 4KiB to 4MiB
  std::uint32_t copies = 1;
};

struct TlsConfig {
  std::filesystem::path cert, key, ca;
  std::optional<std::filesystem::path> crl;
};

struct ContentKeyConfig {
  std::filesystem::path public_key;
  std::optional<std::filesystem::path> private_key;  ///< there exactly when role is root
};

struct AdminConfig {
  std::filesystem::path socket = "/run/relayd/admin.sock";
  std::uint32_t mode = 0660;
};

struct LogConfig {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::logfmt;
};

struct LimitsConfig {
  std::uint64_t log_bytes = 64ull << 30;
  std::uint64_t memory_bytes = 256ull << 20;      ///< frames and queues, beside the mapped image
  std::uint64_t child_window_bytes = 8ull << 20;  ///< in flight to one child before it reads from the log
  std::uint32_t max_children = 32;                ///< planned and adopted together
  std::uint32_t handshakes = 64;                  ///< at once
  std::uint32_t apply_threads = 0;                ///< 0: one per core
  std::uint32_t encode_threads = 0;               ///< 0: one per core; root only
  std::uint32_t io_threads = 2;
};

struct TimeoutsConfig {
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds dead{5'000};       ///< nothing heard from a peer for so long
  std::chrono::milliseconds progress{30'000};  ///< bytes are wanted and none move
  std::chrono::milliseconds handshake{5'000};
  std::chrono::milliseconds prepare{600'000};  ///< of a refit, then commit.on_timeout decides
};

struct CommitConfig {
  CommitPolicy policy = CommitPolicy::all;
  double quorum = 0.95;  ///< share of the nodes, 0 < quorum <= 1
  OnTimeout on_timeout = OnTimeout::abort;
};

struct RelaydConfig {
  std::filesystem::path file;  ///< where it was loaded from
  std::string node;
  Role role = Role::relay;
  std::filesystem::path topology;
  std::filesystem::path state_dir;
  ImageConfig image;
  TlsConfig tls;
  ContentKeyConfig content_key;
  std::optional<topology::Address> listen;  ///< none: the address that the topology gives to the node
  AdminConfig admin;
  LogConfig log;
  LimitsConfig limits;
  TimeoutsConfig timeouts;
  CommitConfig commit;
};

/// `config` is there exactly when `findings` is empty.
struct LoadedConfig {
  std::optional<RelaydConfig> config;
  Findings findings;
};

[[nodiscard]] LoadedConfig load_relayd_config(const std::filesystem::path& file);
/// The same from text that is already in memory; `file` names it in findings and is the base of relative paths.
[[nodiscard]] LoadedConfig parse_relayd_config(const std::filesystem::path& file, std::string_view text);

/// What the config and the topology must agree on: the node is a host of it, and `role` is what the topology makes of
/// it.
[[nodiscard]] Findings check_against_topology(const RelaydConfig& config, const topology::Model& model);

/// The effective configuration, every key with its value, as a relayd.yaml that loads to the same again.
[[nodiscard]] std::string to_yaml(const RelaydConfig& config);

[[nodiscard]] const char* name_of(Role role) noexcept;
[[nodiscard]] const char* name_of(LogLevel level) noexcept;
[[nodiscard]] const char* name_of(LogFormat format) noexcept;
[[nodiscard]] const char* name_of(CommitPolicy policy) noexcept;
[[nodiscard]] const char* name_of(OnTimeout action) noexcept;

}  // namespace deltarelay::config
