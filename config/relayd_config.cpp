#include "config/relayd_config.hpp"

#include <algorithm>

#include "config/map_reader.hpp"
#include "config/nearest_name.hpp"

namespace deltarelay::config {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::uint64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
constexpr milliseconds day{86'400'000};

const MapReader::Choices<Role> roles{{"root", Role::root}, {"relay", Role::relay}};
const MapReader::Choices<LogLevel> levels{{"trace", LogLevel::trace},
                                          {"debug", LogLevel::debug},
                                          {"info", LogLevel::info},
                                          {"warn", LogLevel::warn},
                                          {"error", LogLevel::error}};
const MapReader::Choices<LogFormat> formats{{"logfmt", LogFormat::logfmt}, {"json", LogFormat::json}};
const MapReader::Choices<CommitPolicy> policies{{"all", CommitPolicy::all}, {"quorum", CommitPolicy::quorum}};
const MapReader::Choices<OnTimeout> timeout_actions{{"abort", OnTimeout::abort},
                                                    {"commit_if_quorum", OnTimeout::commit_if_quorum}};

template <class Value>
const char* name_in(const MapReader::Choices<Value>& choices, Value value) {
  const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& c) { return c.second == value; });
  return found == choices.end() ? "unknown" : found->first.data();
}

/// Reads every section; one method each, named after it.
class Loader {
 public:
  Loader(const fs::path& file, Findings& findings) : base_(fs::absolute(file).parent_path()), findings_(findings) {
    config_.file = file;
  }

  RelaydConfig load(const YamlNode& root) {
    MapReader top(root, "", findings_);
    top.required_text("node", config_.node);
    read_role(top);
    top.required_path("topology", base_, config_.topology);
    top.required_path("state_dir", base_, config_.state_dir);
    section(top, "image", true, &Loader::image);
    section(top, "tls", true, &Loader::tls);
    section(top, "content_key", true, &Loader::content_key);
    listen(top);
    section(top, "admin", false, &Loader::admin);
    section(top, "log", false, &Loader::log);
    section(top, "limits", false, &Loader::limits);
    section(top, "timeouts", false, &Loader::timeouts);
    section(top, "commit", false, &Loader::commit);
    check_directories(top);
    top.finish();
    return std::move(config_);
  }

 private:
  /// What depends on the role is checked only when it was stated: a mistake in it is one finding, not several.
  void read_role(MapReader& top) {
    const auto findings_before = findings_.size();
    (void)top.required("role");
    top.choice("role", config_.role, roles);
    role_known_ = findings_.size() == findings_before;
  }

  void section(MapReader& top, const char* key, bool is_required, void (Loader::*read)(MapReader&)) {
    const YamlNode* node = is_required ? top.required(key) : top.node(key);
    if (node == nullptr) return;
    MapReader map(*node, std::string(key) + ".", findings_);
    if (!map.is_map()) return;
    (this->*read)(map);
    map.finish();
  }

  void image(MapReader& map) {
    map.required_path("dir", base_, config_.image.dir);
    map.size("block_size", config_.image.block_bytes, 4 * kib, 4 * mib);
    if ((config_.image.block_bytes & (config_.image.block_bytes - 1)) != 0) {
      map.refuse("block_size", "must be a power of two, such as 1MiB");
    }
    map.count("copies", config_.image.copies, 1, 1);
  }

  void tls(MapReader& map) {
    map.required_path("cert", base_, config_.tls.cert);
    map.required_path("key", base_, config_.tls.key);
    map.required_path("ca", base_, config_.tls.ca);
    optional_path(map, "crl", config_.tls.crl);
  }

  void content_key(MapReader& map) {
    map.required_path("public", base_, config_.content_key.public_key);
    optional_path(map, "private", config_.content_key.private_key);
    if (!role_known_) return;
    const bool has_private = config_.content_key.private_key.has_value();
    if (config_.role == Role::root && !has_private) {
      map.refuse("private", "is missing; the root signs what it sends and needs the private content key");
    } else if (config_.role == Role::relay && has_private) {
      map.refuse("private", "must not be on a relay; only the root may sign. Take the key off this host");
    }
  }

  void listen(MapReader& top) {
    std::string given;
    top.text("listen", given);
    if (given.empty()) return;
    auto address = parse_address(given);
    if (address) {
      config_.listen = std::move(*address);
    } else {
      top.refuse("listen", shown(given) + " " + address.error().why);
    }
  }

  void admin(MapReader& map) {
    map.path("socket", base_, config_.admin.socket);
    constexpr std::size_t socket_path_bytes_max = 107;  // sun_path less its terminator
    if (config_.admin.socket.native().size() > socket_path_bytes_max) {
      map.refuse("socket", "is longer than the 107 bytes that a Unix socket's path may have");
    }
    std::string mode;
    map.text("mode", mode);
    if (mode.empty()) return;
    const bool octal =
        mode.size() == 4 && mode.front() == '0' && mode.find_first_not_of("01234567") == std::string::npos;
    if (!octal) {
      map.refuse("mode", shown(mode) + " is not a file mode; write four octal digits, such as 0660");
    } else {
      config_.admin.mode = static_cast<std::uint32_t>(std::stoul(mode, nullptr, 8));
      if ((config_.admin.mode & 07) != 0)
        map.refuse("mode", "lets every user of the host steer the daemon; end it in 0");
    }
  }

  void log(MapReader& map) {
    map.choice("level", config_.log.level, levels);
    map.choice("format", config_.log.format, formats);
  }

  void limits(MapReader& map) {
    LimitsConfig& limits = config_.limits;
    map.size("log_bytes", limits.log_bytes, mib, 1024 * 1024 * gib);
    map.size("memory_bytes", limits.memory_bytes, 32 * mib, 1024 * gib);
    map.size("child_window_bytes", limits.child_window_bytes, mib, 4 * gib);
    map.count("max_children", limits.max_children, 1, 4096);
    map.count("handshakes", limits.handshakes, 1, 4096);
    map.count("apply_threads", limits.apply_threads, 0, 1024);
    map.count("encode_threads", limits.encode_threads, 0, 1024);
    map.count("io_threads", limits.io_threads, 1, 64);
    if (limits.child_window_bytes > limits.memory_bytes / 2) {
      map.refuse("child_window_bytes", "is more than half of limits.memory_bytes (" + size_text(limits.memory_bytes) +
                                           "); one child must not hold up the others");
    }
  }

  void timeouts(MapReader& map) {
    TimeoutsConfig& timeouts = config_.timeouts;
    map.duration("heartbeat", timeouts.heartbeat, milliseconds(10), milliseconds(60'000));
    map.duration("dead", timeouts.dead, milliseconds(50), milliseconds(600'000));
    map.duration("progress", timeouts.progress, milliseconds(100), day);
    map.duration("handshake", timeouts.handshake, milliseconds(100), milliseconds(600'000));
    map.duration("prepare", timeouts.prepare, milliseconds(1'000), 7 * day);
    if (timeouts.dead < 2 * timeouts.heartbeat) {
      map.refuse("dead", "must be at least twice timeouts.heartbeat (" + duration_text(timeouts.heartbeat) +
                             "), or one late heartbeat cuts the link");
    }
    if (timeouts.progress < timeouts.dead) {
      map.refuse("progress", "must not be shorter than timeouts.dead (" + duration_text(timeouts.dead) + ")");
    }
  }

  void commit(MapReader& map) {
    map.choice("policy", config_.commit.policy, policies);
    map.share("quorum", config_.commit.quorum);
    map.choice("on_timeout", config_.commit.on_timeout, timeout_actions);
  }

  void optional_path(MapReader& map, std::string_view key, std::optional<fs::path>& out) {
    fs::path given;
    map.path(key, base_, given);
    if (!given.empty()) out = given;
  }

  /// The image directory belongs to the engine as well: nothing of ours but the image may live in it.
  void check_directories(MapReader& top) {
    if (config_.image.dir.empty() || config_.state_dir.empty()) return;
    const fs::path inside = config_.state_dir.lexically_relative(config_.image.dir);
    if (!inside.empty() && *inside.begin() != "..") {
      top.refuse("state_dir", "lies inside image.dir; the two must be apart");
    }
  }

  const fs::path base_;
  Findings& findings_;
  RelaydConfig config_;
  bool role_known_ = false;
};

}  // namespace

const char* name_of(Role role) noexcept {
  return name_in(roles, role);
}
const char* name_of(LogLevel level) noexcept {
  return name_in(levels, level);
}
const char* name_of(LogFormat format) noexcept {
  return name_in(formats, format);
}
const char* name_of(CommitPolicy policy) noexcept {
  return name_in(policies, policy);
}
const char* name_of(OnTimeout action) noexcept {
  return name_in(timeout_actions, action);
}

LoadedConfig parse_relayd_config(const fs::path& file, std::string_view text) {
  LoadedConfig out{std::nullopt, Findings(file.string())};
  const auto document = parse_yaml(text, out.findings);
  if (!document) return out;
  RelaydConfig config = Loader(file, out.findings).load(*document);
  if (out.findings.empty()) out.config = std::move(config);
  return out;
}

LoadedConfig load_relayd_config(const fs::path& file) {
  Findings findings(file.string());
  const auto text = read_yaml_file(file, findings);
  if (!text) return {std::nullopt, std::move(findings)};
  return parse_relayd_config(file, *text);
}

Findings check_against_topology(const RelaydConfig& config, const topology::Model& model) {
  Findings findings(config.file.string());
  std::vector<std::string_view> names;
  for (const topology::Host& host : model.hosts) names.push_back(host.name);
  const std::string where = "of " + config.topology.string();
  if (std::find(names.begin(), names.end(), config.node) == names.end()) {
    findings.add({}, "node: " + shown(config.node) + " is not a host " + where + did_you_mean(config.node, names));
    return findings;
  }
  const std::string& root = model.hosts.at(topology::raw(model.root)).name;
  if (config.role == Role::root && config.node != root) {
    findings.add({}, "role: is root, but the root " + where + " is " + shown(root));
  } else if (config.role == Role::relay && config.node == root) {
    findings.add({}, "role: is relay, but " + shown(root) + " is the root " + where);
  }
  return findings;
}

}  // namespace deltarelay::config
