// Reading the log back after a start: what is whole and genuine is kept, a torn tail is cut off, and damage, or a
// record that the root did not sign, ends its stripe there. The rest is received again.
//
// A length in a damaged record is never trusted: nothing behind the first bad record of a stripe is used. A stripe
// without its first record is not used at all: nothing says what its refit starts from.
#include <cerrno>
#include <charconv>
#include <system_error>

#include "relay/store/log.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;

struct SegmentName {
  std::uint64_t version = 0, stripe = 0, first = 0;
};

/// v<version>-s<stripe>-<first>.seg; false for any other file.
bool parse_name(const std::string& name, SegmentName& out) {
  const char* at = name.data();
  const char* end = at + name.size();
  const auto number = [&](const char* prefix, std::uint64_t& value) {
    for (; *prefix != 0; ++prefix, ++at)
      if (at == end || *at != *prefix) return false;
    const auto parsed = std::from_chars(at, end, value);
    at = parsed.ptr;
    return parsed.ec == std::errc{};
  };
  return number("v", out.version) && number("-s", out.stripe) && number("-", out.first) && out.stripe <= 0xffff &&
         std::string_view(at, static_cast<std::size_t>(end - at)) == ".seg";
}

}  // namespace

StoreResult<std::unique_ptr<RefitLog>> RefitLog::open(std::filesystem::path directory, LogLimits limits, FileOps& ops,
                                                      const RecordCheck& is_genuine) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return system_error(error.value(), "make directory", directory.string());
  std::unique_ptr<RefitLog> log(new RefitLog(std::move(directory), limits, ops));
  if (auto done = log->recover(is_genuine); !done) return done.error();
  return log;
}

StoreResult<void> RefitLog::recover(const RecordCheck& is_genuine) {
  auto names = ops_.list(directory_);
  if (!names) return names.error();
  std::map<Key, std::map<std::uint64_t, std::string>> found;
  for (const auto& name : *names) {
    SegmentName parsed;
    if (parse_name(name, parsed))
      found[{codec::Version{parsed.version}, codec::StripeId{static_cast<std::uint16_t>(parsed.stripe)}}]
           [parsed.first] = name;
  }
  for (const auto& [key, segments] : found) {
    bool whole = true;
    for (const auto& [first, name] : segments) {
      if (!whole) {
        if (auto done = ops_.remove(directory_ / name); !done) return done;
        continue;
      }
      auto kept = recover_segment(key, first, name, first == segments.rbegin()->first, is_genuine);
      if (!kept) return kept.error();
      whole = *kept;
    }
  }
  return {};
}

/// True when the segment is whole, so that the next one may follow.
StoreResult<bool> RefitLog::recover_segment(const Key& key, std::uint64_t first, const std::string& name, bool last,
                                            const RecordCheck& is_genuine) {
  const auto path = directory_ / name;
  auto& stripe = stripes_[key];
  if (!stripe) stripe = std::make_shared<Stripe>();
  if (first != stripe->entries.size()) {
    cuts_.push_back({path.string(), 0, false, "records before this segment are missing"});
    if (auto done = ops_.remove(path); !done) return done.error();
    return false;
  }
  auto file = ops_.open(path, OpenMode::read_write);
  if (!file) return file.error();
  auto size = ops_.size(*file);
  if (!size) return size.error();
  auto segment = std::make_shared<Segment>(Segment{std::move(*file)});
  stripe->segments.push_back(segment);
  const char* why = nullptr;
  std::uint64_t bad_end = 0;  // where the bad record would end, by its own word
  while (segment->bytes < *size && why == nullptr) {
    const std::uint64_t left = *size - segment->bytes;
    bad_end = *size;
    std::vector<std::byte> head(codec::record_header_bytes);
    if (left < head.size()) { why = "header cut short"; break; }
    auto got = ops_.read_at(segment->file, segment->bytes, head);
    if (!got) return got.error();
    const auto header = codec::decode_record_header(head);
    if (!header) { why = "not a record"; bad_end = segment->bytes; break; }
    const std::uint64_t bytes = codec::record_header_bytes + std::uint64_t{header->payload_bytes};
    if (header->version != key.first || header->stripe != key.second ||
        raw(header->sequence) != stripe->entries.size()) {
      why = "a record of another place";
      bad_end = segment->bytes;
    } else if (left < bytes) {
      why = "payload cut short";
    } else if (auto record = load(segment->file, segment->bytes, bytes); !record) {
      if (record.error().code != store_errc::corrupt) return record.error();
      why = "payload does not match its SHA-256";
      bad_end = segment->bytes + bytes;
    } else if (is_genuine && !is_genuine(**record)) {
      why = "a record that the root did not sign";
      bad_end = segment->bytes;
    } else {
      stripe->entries.push_back({segment, segment->bytes, static_cast<std::uint32_t>(bytes), nullptr});
      ++stripe->written;
      segment->bytes += bytes;
    }
  }
  if (why == nullptr) return true;
  cuts_.push_back({path.string(), segment->bytes, last && bad_end == *size, why});
  if (auto done = ops_.truncate(segment->file, segment->bytes); !done) return done.error();
  if (auto done = ops_.sync(segment->file); !done) return done.error();
  return false;
}

}  // namespace deltarelay::relay
