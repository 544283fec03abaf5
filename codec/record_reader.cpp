#include "codec/record_reader.hpp"

#include <algorithm>

namespace deltarelay::codec {

bool RecordReader::is_wanted(RecordType type) const noexcept {
  if (type >= RecordType::link_first) return accept_ == Accept::log_records_and_link_messages;
  return type >= RecordType::begin && type <= RecordType::layout;
}

// Moves bytes from `in` until bytes_ has `wanted_size` of them or `in` is empty.
void RecordReader::take(Bytes& in, std::size_t wanted_size) {
  const std::size_t count = std::min(in.size(), wanted_size - bytes_.size());
  bytes_.insert(bytes_.end(), in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
  in = in.subspan(count);
}

Result<void> RecordReader::begin_payload() {
  auto header = decode_record_header(bytes_);
  if (!header) return header.error();
  if (!is_wanted(header->type)) {
    ++skipped_records_;
    skip_bytes_ = header->payload_bytes;
    bytes_.clear();
    offset_ += record_header_bytes;
    return {};
  }
  header_ = *header;
  header_known_ = true;
  return {};
}

Result<RecordPtr> RecordReader::read(Bytes& in) {
  while (true) {
    if (skip_bytes_ != 0) {
      const std::size_t count = std::min<std::size_t>(in.size(), skip_bytes_);
      in = in.subspan(count);
      skip_bytes_ -= static_cast<std::uint32_t>(count);
      offset_ += count;
      if (skip_bytes_ != 0) return RecordPtr{};
    }
    if (!header_known_) {
      take(in, record_header_bytes);
      if (bytes_.size() < record_header_bytes) {
        // Damage shows as early as it can: a wrong magic need not wait for the rest of a header.
        auto early = decode_record_header(bytes_);
        if (!early && early.error() != errc::truncated) return early.error();
        return RecordPtr{};
      }
      if (auto begun = begin_payload(); !begun) return begun.error();
      if (!header_known_) continue;
    }
    const std::size_t record_bytes = record_header_bytes + header_.payload_bytes;
    take(in, record_bytes);
    if (bytes_.size() < record_bytes) return RecordPtr{};

    auto record = std::make_shared<Record>();
    record->header = header_;
    record->bytes = std::move(bytes_);
    bytes_ = {};
    header_known_ = false;
    offset_ += record_bytes;
    return RecordPtr(std::move(record));
  }
}

Result<void> RecordReader::finish() const noexcept {
  if (skip_bytes_ != 0 || !bytes_.empty()) return errc::truncated;
  return {};
}

}  // namespace deltarelay::codec
