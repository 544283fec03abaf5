#include "relay/store/ledger.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "codec/limits.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;

constexpr std::uint64_t ledger_magic = 0x3152474c594c5244;   // "DRLYLGR1"
constexpr std::uint64_t digests_magic = 0x31544744594c5244;  // "DRLYDGT1"
constexpr std::uint64_t ledger_bytes_max = 256 * codec::mib;
constexpr std::uint64_t digests_bytes_max = 64 * codec::gib;
constexpr std::size_t digest_bytes = sizeof(codec::Digest);

class Writer {
 public:
  void number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) out_.push_back(static_cast<std::byte>(value >> shift & 0xff));
  }
  void fixed(codec::Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void bytes(codec::Bytes value) {
    number(value.size());
    fixed(value);
  }
  void text(const std::string& value) { bytes(std::as_bytes(std::span(value))); }
  /// The content and, behind it, its digest.
  std::vector<std::byte> seal() {
    fixed(codec::digest_of(out_).bytes);
    return std::move(out_);
  }

 private:
  std::vector<std::byte> out_;
};

/// Reads what Writer wrote. After the first read past the end everything is zero or empty and ok() is false.
class Reader {
 public:
  explicit Reader(codec::Bytes in) : in_(in) {}
  std::uint64_t number() {
    const auto bytes = take(8);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[i])} << 8 * i;
    return value;
  }
  template <std::size_t n>
  void fixed(std::array<std::byte, n>& out) {
    const auto bytes = take(n);
    if (ok_) std::memcpy(out.data(), bytes.data(), n);
  }
  std::vector<std::byte> bytes() {
    const auto value = take(number());
    return {value.begin(), value.end()};
  }
  std::string text() {
    const auto value = take(number());
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  /// A count of things of which each takes at least `bytes_each`: never more than what is left can hold.
  std::uint64_t count(std::uint64_t bytes_each) {
    const std::uint64_t value = number();
    if (value > in_.size() / bytes_each) ok_ = false;
    return ok_ ? value : 0;
  }
  void refuse_unless(bool condition) { ok_ = ok_ && condition; }
  [[nodiscard]] bool ended_well() const { return ok_ && in_.empty(); }

 private:
  codec::Bytes take(std::uint64_t n) {
    ok_ = ok_ && n <= in_.size();
    if (!ok_) return {};
    const auto out = in_.first(n);
    in_ = in_.subspan(n);
    return out;
  }
  codec::Bytes in_;
  bool ok_ = true;
};

std::vector<std::byte> encode(const LedgerRecord& record) {
  Writer out;
  out.number(ledger_magic);
  out.fixed(record.mesh.bytes);
  out.text(record.node);
  out.number(record.boot_count);
  out.number(raw(record.epoch));
  out.number(raw(record.committed));
  out.fixed(record.image.bytes);
  out.number(raw(record.highest_used));
  out.text(record.kernel_boot_id);
  out.bytes(record.end_record);
  out.bytes(record.layout_record);
  out.number(record.manifest ? 1 : 0);
  if (record.manifest) {
    out.number(raw(record.manifest->version));
    out.number(raw(record.manifest->base));
    out.number(static_cast<std::uint64_t>(record.manifest->state));
  }
  out.number(record.history.size());
  for (const auto& entry : record.history) {
    out.number(raw(entry.version));
    out.number(raw(entry.base));
    out.number(static_cast<std::uint64_t>(entry.began_unix_ms));
    out.number(static_cast<std::uint64_t>(entry.ended_unix_ms));
    out.number(entry.dense_bytes);
    out.number(entry.payload_bytes);
    out.number(entry.changed_elements);
    out.number(entry.changed_blocks);
    out.text(entry.result);
    out.number(entry.left_out.size());
    for (const auto& name : entry.left_out) out.text(name);
  }
  return out.seal();
}

VersionHistory decode_history(Reader& in) {
  VersionHistory entry;
  entry.version = codec::Version{in.number()};
  entry.base = codec::Version{in.number()};
  entry.began_unix_ms = static_cast<std::int64_t>(in.number());
  entry.ended_unix_ms = static_cast<std::int64_t>(in.number());
  entry.dense_bytes = in.number();
  entry.payload_bytes = in.number();
  entry.changed_elements = in.number();
  entry.changed_blocks = in.number();
  entry.result = in.text();
  for (std::uint64_t n = in.count(8); n > 0; --n) entry.left_out.push_back(in.text());
  return entry;
}

bool decode(codec::Bytes body, LedgerRecord& record) {
  Reader in(body);
  in.refuse_unless(in.number() == ledger_magic);
  in.fixed(record.mesh.bytes);
  record.node = in.text();
  record.boot_count = in.number();
  record.epoch = codec::Epoch{in.number()};
  record.committed = codec::Version{in.number()};
  in.fixed(record.image.bytes);
  record.highest_used = codec::Version{in.number()};
  record.kernel_boot_id = in.text();
  record.end_record = in.bytes();
  record.layout_record = in.bytes();
  const std::uint64_t has_manifest = in.number();
  in.refuse_unless(has_manifest <= 1);
  if (has_manifest == 1) {
    RootManifest manifest;
    manifest.version = codec::Version{in.number()};
    manifest.base = codec::Version{in.number()};
    const std::uint64_t state = in.number();
    in.refuse_unless(state <= static_cast<std::uint64_t>(ManifestState::abort));
    manifest.state = static_cast<ManifestState>(state);
    record.manifest = manifest;
  }
  for (std::uint64_t n = in.count(80); n > 0; --n) record.history.push_back(decode_history(in));
  return in.ended_well();
}

/// The content before the digest at the end, or nothing when the digest does not hold.
std::optional<codec::Bytes> unseal(codec::Bytes whole) {
  if (whole.size() < digest_bytes) return std::nullopt;
  const auto body = whole.first(whole.size() - digest_bytes);
  const auto digest = codec::digest_of(body);
  if (std::memcmp(digest.bytes.data(), whole.data() + body.size(), digest_bytes) != 0) return std::nullopt;
  return body;
}

std::string digests_name(codec::Version version) { return fmt::format("digests-v{}", raw(version)); }

StoreError corrupt(const std::filesystem::path& path) {
  return {make_error_code(store_errc::corrupt), "read", path.string(), 0};
}

}  // namespace

std::string kernel_boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

StoreResult<std::optional<LedgerRecord>> Ledger::load() {
  const auto path = directory_ / "ledger";
  auto content = read_file(ops_, path, ledger_bytes_max);
  if (!content) {
    if (content.error().code == boost::system::errc::no_such_file_or_directory) return std::optional<LedgerRecord>();
    return content.error();
  }
  const auto body = unseal(*content);
  LedgerRecord record;
  if (!body || !decode(*body, record)) return corrupt(path);
  return std::optional<LedgerRecord>(std::move(record));
}

StoreResult<void> Ledger::save(LedgerRecord record) {
  if (record.history.size() > history_versions_max)
    record.history.erase(record.history.begin(), record.history.end() - static_cast<std::ptrdiff_t>(history_versions_max));
  return replace_file(ops_, directory_ / "ledger", encode(record));
}

StoreResult<void> Ledger::save_digests(codec::Version version, std::span<const codec::Digest> table) {
  Writer out;
  out.number(digests_magic);
  out.number(raw(version));
  out.bytes(std::as_bytes(table));
  return replace_file(ops_, directory_ / digests_name(version), out.seal());
}

StoreResult<std::vector<codec::Digest>> Ledger::load_digests(codec::Version version, const codec::Digest& expected) {
  const auto path = directory_ / digests_name(version);
  auto content = read_file(ops_, path, digests_bytes_max);
  if (!content) return content.error();
  const auto body = unseal(*content);
  if (!body) return corrupt(path);
  Reader in(*body);
  in.refuse_unless(in.number() == digests_magic);
  in.refuse_unless(in.number() == raw(version));
  const auto bytes = in.bytes();
  if (!in.ended_well() || bytes.size() % digest_bytes != 0) return corrupt(path);
  std::vector<codec::Digest> table(bytes.size() / digest_bytes);
  if (!table.empty()) std::memcpy(table.data(), bytes.data(), bytes.size());
  if (codec::digest_of(std::span<const codec::Digest>(table)) != expected) return corrupt(path);
  return table;
}

StoreResult<void> Ledger::remove_other_digests(codec::Version keep, codec::Version also_keep) {
  auto names = ops_.list(directory_);
  if (!names) return names.error();
  for (const auto& name : *names) {
    if (!name.starts_with("digests-v") || name == digests_name(keep) || name == digests_name(also_keep)) continue;
    if (auto done = ops_.remove(directory_ / name); !done) return done;
  }
  return {};
}

}  // namespace deltarelay::relay
