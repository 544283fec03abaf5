#include "relay/store/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace deltarelay::relay {
namespace {

using codec::raw;

StoreError damaged(store_errc code, const char* what, const std::filesystem::path& path, std::uint64_t offset = 0) {
  return {make_error_code(code), what, path.string(), offset};
}

}  // namespace

StoreResult<void> RefitLog::publish(codec::RecordPtr record) {
  const auto& header = record->header;
  const std::scoped_lock lock(mutex_);
  auto& stripe = stripes_[{header.version, header.stripe}];
  if (!stripe) stripe = std::make_shared<Stripe>();
  if (raw(header.sequence) != stripe->entries.size())
    return damaged(store_errc::out_of_order, "append to", directory_, raw(header.sequence));
  Entry entry;
  entry.bytes = static_cast<std::uint32_t>(record->bytes.size());
  entry.cached = std::move(record);
  stripe->entries.push_back(std::move(entry));
  return {};
}

StoreResult<void> RefitLog::write(const codec::RecordPtr& record) {
  const auto& header = record->header;
  const Key key{header.version, header.stripe};
  std::shared_ptr<Stripe> stripe;
  std::shared_ptr<Segment> segment;
  std::uint64_t offset = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = stripes_.find(key);
    if (found == stripes_.end()) return {};
    stripe = found->second;
    const std::uint64_t index = raw(header.sequence);
    if (index < stripe->written || index >= stripe->entries.size() || stripe->entries[index].cached != record)
      return {};
    if (index != stripe->written)
      return damaged(store_errc::out_of_order, "write to", directory_, raw(header.sequence));
    auto chosen = segment_for(key, *stripe, raw(header.sequence), record->bytes.size());
    if (!chosen) return chosen.error();
    segment = *chosen;
    offset = segment->bytes;
  }
  // Outside the lock: readers must not wait for the disk. Only this thread changes the segment's length.
  if (auto done = ops_.write_at(segment->file, offset, record->bytes); !done) return done;
  const std::scoped_lock lock(mutex_);
  segment->bytes += record->bytes.size();
  segment->dirty = true;
  Entry& entry = stripe->entries[stripe->written];
  entry.segment = segment;
  entry.offset = offset;
  written_in_cache_.push_back({stripe, stripe->written});
  cached_bytes_ += entry.bytes;
  ++stripe->written;
  evict();
  return {};
}

StoreResult<std::shared_ptr<RefitLog::Segment>> RefitLog::segment_for(const Key& key, Stripe& stripe,
                                                                      std::uint64_t sequence, std::size_t bytes) {
  if (!stripe.segments.empty() && stripe.segments.back()->bytes + bytes <= limits_.segment_bytes_max)
    return stripe.segments.back();
  if (!stripe.segments.empty() && stripe.segments.back()->bytes == 0) return stripe.segments.back();
  const auto path = directory_ / fmt::format("v{}-s{}-{}.seg", raw(key.first), raw(key.second), sequence);
  auto file = ops_.open(path, OpenMode::create);
  if (!file) return file.error();
  stripe.segments.push_back(std::make_shared<Segment>(Segment{std::move(*file)}));
  directory_dirty_ = true;
  return stripe.segments.back();
}

void RefitLog::evict() {
  while (cached_bytes_ > limits_.cache_bytes_max && !written_in_cache_.empty()) {
    const Cached oldest = std::move(written_in_cache_.front());
    written_in_cache_.pop_front();
    Entry& entry = oldest.stripe->entries[oldest.index];
    entry.cached.reset();
    cached_bytes_ -= entry.bytes;
  }
}

StoreResult<codec::RecordPtr> RefitLog::read(codec::Version version, codec::StripeId stripe, codec::Sequence sequence) {
  std::shared_ptr<Segment> segment;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = stripes_.find({version, stripe});
    if (found == stripes_.end() || raw(sequence) >= found->second->entries.size())
      return damaged(store_errc::not_in_log, "read from", directory_, raw(sequence));
    const Entry& entry = found->second->entries[raw(sequence)];
    if (entry.cached) return entry.cached;
    assert(entry.segment);
    segment = entry.segment;
    offset = entry.offset;
    bytes = entry.bytes;
  }
  auto record = load(segment->file, offset, bytes);
  if (!record) return record;
  const auto& header = (*record)->header;
  if (header.version != version || header.stripe != stripe || header.sequence != sequence)
    return damaged(store_errc::corrupt, "read", segment->file.path(), offset);
  return record;
}

StoreResult<codec::RecordPtr> RefitLog::load(const File& file, std::uint64_t offset, std::size_t bytes) {
  auto record = std::make_shared<codec::Record>();
  record->bytes.resize(bytes);
  auto got = ops_.read_at(file, offset, record->bytes);
  if (!got) return got.error();
  if (*got != bytes) return damaged(store_errc::corrupt, "read", file.path(), offset);
  auto header = codec::decode_record_header(record->bytes);
  if (!header || header->payload_bytes != bytes - codec::record_header_bytes ||
      codec::sha256_of(record->payload()) != header->payload_sha256)
    return damaged(store_errc::corrupt, "read", file.path(), offset);
  record->header = *header;
  return codec::RecordPtr(std::move(record));
}

StoreResult<void> RefitLog::sync() {
  std::vector<std::shared_ptr<Segment>> dirty;
  bool directory = false;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, stripe] : stripes_)
      for (const auto& segment : stripe->segments)
        if (segment->dirty) dirty.push_back(segment);
    directory = directory_dirty_;
  }
  for (const auto& segment : dirty) {
    std::uint64_t before = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (segment->lost) return system_error(EIO, "sync", segment->file.path().string());
      before = segment->bytes;
    }
    auto done = ops_.sync(segment->file);
    const std::scoped_lock lock(mutex_);
    if (!done) {
      segment->lost = true;
      return done;
    }
    if (segment->bytes == before) segment->dirty = false;
  }
  if (!directory) return {};
  if (auto done = ops_.sync_directory(directory_); !done) return done;
  const std::scoped_lock lock(mutex_);
  directory_dirty_ = false;
  return {};
}

StoreResult<void> RefitLog::for_each_recovered(const std::function<void(const codec::RecordPtr&)>& fn) {
  std::vector<std::pair<Key, std::size_t>> counts;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, stripe] : stripes_) counts.emplace_back(key, stripe->written);
  }
  for (const auto& [key, count] : counts) {
    for (std::uint64_t sequence = 0; sequence < count; ++sequence) {
      auto record = read(key.first, key.second, codec::Sequence{sequence});
      if (!record) return record.error();
      fn(*record);
    }
  }
  return {};
}

std::vector<std::filesystem::path> RefitLog::forget(codec::Version version) {
  std::vector<std::filesystem::path> paths;
  const std::scoped_lock lock(mutex_);
  const auto first = stripes_.lower_bound({version, codec::StripeId{0}});
  auto last = first;
  for (; last != stripes_.end() && last->first.first == version; ++last) {
    for (const auto& segment : last->second->segments) paths.push_back(segment->file.path());
    std::erase_if(written_in_cache_, [&](const Cached& cached) {
      if (cached.stripe != last->second) return false;
      cached_bytes_ -= cached.stripe->entries[cached.index].bytes;
      return true;
    });
  }
  stripes_.erase(first, last);
  return paths;
}

StoreResult<void> RefitLog::remove(const std::vector<std::filesystem::path>& forgotten) {
  // Newest segment first: a crash half way leaves a prefix, which recovery takes for what it is.
  for (auto path = forgotten.rbegin(); path != forgotten.rend(); ++path)
    if (auto done = ops_.remove(*path); !done) return done;
  return {};
}

std::uint64_t RefitLog::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [key, stripe] : stripes_)
    for (const auto& segment : stripe->segments) sum += segment->bytes;
  return sum;
}

std::uint64_t RefitLog::unwritten_bytes() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [key, stripe] : stripes_)
    for (std::size_t i = stripe->written; i < stripe->entries.size(); ++i) sum += stripe->entries[i].bytes;
  return sum;
}

std::vector<codec::Version> RefitLog::to_drop(std::uint64_t bytes_max, codec::Version keep_from) const {
  std::uint64_t left = bytes();
  std::map<codec::Version, std::uint64_t> sizes;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, stripe] : stripes_)
      for (const auto& segment : stripe->segments) sizes[key.first] += segment->bytes;
  }
  std::vector<codec::Version> out;
  for (const auto& [version, size] : sizes) {
    if (left <= bytes_max || version >= keep_from) break;
    out.push_back(version);
    left -= std::min(left, size);
  }
  return out;
}

}  // namespace deltarelay::relay
