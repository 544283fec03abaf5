// The effective configuration back as YAML, in the order of relayd.example.yaml.
#include <array>
#include <cstdio>

#include "config/relayd_config.hpp"
#include "config/units.hpp"

namespace deltarelay::config {
namespace {

/// Double quotes with escapes: right for every path, whatever it contains.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

class Writer {
 public:
  void section(const char* name) {
    out_ += std::string(name) + ":\n";
    indent_ = "  ";
  }
  void line(const char* key, const std::string& value) { out_ += indent_ + key + ": " + value + '\n'; }
  void count(const char* key, std::uint64_t value) { line(key, std::to_string(value)); }
  void size(const char* key, std::uint64_t value) { line(key, size_text(value)); }
  void duration(const char* key, std::chrono::milliseconds value) { line(key, duration_text(value)); }
  void path(const char* key, const std::filesystem::path& value) { line(key, quoted(value.string())); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_, indent_;
};

std::string mode_text(std::uint32_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0%03o", mode);
  return text.data();
}

void write_limits(Writer& out, const LimitsConfig& limits) {
  out.section("limits");
  out.size("log_bytes", limits.log_bytes);
  out.size("memory_bytes", limits.memory_bytes);
  out.size("child_window_bytes", limits.child_window_bytes);
  out.count("max_children", limits.max_children);
  out.count("handshakes", limits.handshakes);
  out.count("apply_threads", limits.apply_threads);
  out.count("encode_threads", limits.encode_threads);
  out.count("io_threads", limits.io_threads);
}

void write_timeouts(Writer& out, const TimeoutsConfig& timeouts) {
  out.section("timeouts");
  out.duration("heartbeat", timeouts.heartbeat);
  out.duration("dead", timeouts.dead);
  out.duration("progress", timeouts.progress);
  out.duration("handshake", timeouts.handshake);
  out.duration("prepare", timeouts.prepare);
}

}  // namespace

std::string to_yaml(const RelaydConfig& config) {
  Writer out;
  out.line("node", quoted(config.node));
  out.line("role", name_of(config.role));
  out.path("topology", config.topology);
  out.path("state_dir", config.state_dir);
  if (config.listen) out.line("listen", quoted(config.listen->text()));
  out.section("image");
  out.path("dir", config.image.dir);
  out.size("block_size", config.image.block_bytes);
  out.count("copies", config.image.copies);
  out.section("tls");
  out.path("cert", config.tls.cert);
  out.path("key", config.tls.key);
  out.path("ca", config.tls.ca);
  if (config.tls.crl) out.path("crl", *config.tls.crl);
  out.section("content_key");
  out.path("public", config.content_key.public_key);
  if (config.content_key.private_key) out.path("private", *config.content_key.private_key);
  out.section("admin");
  out.path("socket", config.admin.socket);
  out.line("mode", mode_text(config.admin.mode));
  out.section("log");
  out.line("level", name_of(config.log.level));
  out.line("format", name_of(config.log.format));
  write_limits(out, config.limits);
  write_timeouts(out, config.timeouts);
  out.section("commit");
  out.line("policy", name_of(config.commit.policy));
  out.line("quorum", share_text(config.commit.quorum));
  out.line("on_timeout", name_of(config.commit.on_timeout));
  return out.take();
}

}  // namespace deltarelay::config
