#include <cerrno>
#include <cstring>
#include <utility>

#include "codec/delta_file.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {

DeltaFileReader::DeltaFileReader(std::filesystem::path path, std::FILE* file, const ContentVerifier* verifier)
    : path_(std::move(path)), file_(file), verifier_(verifier), buffer_(mib) {}

DeltaFileReader::~DeltaFileReader() {
  std::fclose(file_);
}

Failure DeltaFileReader::failed(error_code code, std::string why) const {
  return {code, path_.string() + ", record at byte " + std::to_string(record_at_), std::move(why)};
}

Checked<std::unique_ptr<DeltaFileReader>> DeltaFileReader::open(const std::filesystem::path& path,
                                                                const ContentVerifier* verifier) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return Failure{errc::io_error, path.string(), std::strerror(errno)};
  std::unique_ptr<DeltaFileReader> out(new DeltaFileReader(path, file, verifier));
  if (auto begin = out->read_begin(); !begin) return begin.error();
  return out;
}

// Null at the end of the file.
Checked<RecordPtr> DeltaFileReader::read_record() {
  record_at_ = reader_.offset();
  while (true) {
    if (unread_.empty()) {
      const std::size_t count = std::fread(buffer_.data(), 1, buffer_.size(), file_);
      if (count == 0) break;
      unread_ = Bytes(buffer_).first(count);
    }
    auto record = reader_.read(unread_);
    if (!record) {
      record_at_ = reader_.offset();
      return failed(record.error());
    }
    if (*record == nullptr) continue;
    record_at_ = reader_.offset() - (*record)->bytes.size();
    if (auto good = check(**record); !good) return good.error();
    return *record;
  }
  if (std::ferror(file_) != 0) return failed(errc::io_error, std::strerror(errno));
  if (auto whole = reader_.finish(); !whole) return failed(whole.error(), "the file is cut off");
  return RecordPtr{};
}

Checked<void> DeltaFileReader::check(const Record& record) const {
  if (verifier_ != nullptr) {
    auto header = verify_record_header(record.header, record.bytes, record.header.mesh, *verifier_);
    if (!header) return failed(header.error());
  }
  if (auto payload = verify_record_payload(record); !payload) return failed(payload.error());
  return {};
}

Checked<void> DeltaFileReader::read_begin() {
  auto record = read_record();
  if (!record) return record.error();
  if (*record == nullptr) return failed(errc::truncated, "the file is empty");
  const RecordHeader& header = (*record)->header;
  if (header.type != RecordType::begin) return failed(errc::malformed_payload, "the first record is no BEGIN");
  auto begin = BeginPayload::decode((*record)->payload());
  if (!begin) return failed(begin.error());
  if (begin->stripe_count != 1 || header.stripe != StripeId{0} || header.sequence != Sequence{0})
    return failed(errc::malformed_payload, "a delta file has one stripe");
  identity_ = {header.mesh, header.epoch, header.version};
  begin_ = *begin;
  signed_ = header.is_signed();
  return {};
}

Checked<RecordPtr> DeltaFileReader::next() {
  if (end_) return RecordPtr{};
  auto record = read_record();
  if (!record) return record;
  if (*record == nullptr) return failed(errc::truncated, "the file ends without END");
  const RecordHeader& header = (*record)->header;
  if (header.mesh != identity_.mesh || header.epoch != identity_.epoch || header.version != identity_.version) {
    return failed(errc::malformed_payload, "records of more than one refit");
  }
  if (header.is_signed() != signed_) return failed(errc::not_signed, "some records are signed and some are not");
  // Records of newer releases are skipped and leave gaps, of exactly their number: a lost record is never taken for
  // one.
  const std::uint64_t skipped = reader_.skipped_records() - std::exchange(skipped_before_, reader_.skipped_records());
  if (header.stripe != StripeId{0}) return failed(errc::malformed_payload, "a delta file has one stripe");
  if (raw(header.sequence) != last_sequence_ + 1 + skipped)
    return failed(errc::malformed_payload, "records out of order");
  last_sequence_ = raw(header.sequence);
  if (header.type == RecordType::end) {
    if (auto closed = close(**record); !closed) return closed.error();
    return RecordPtr{};
  }
  if (header.type == RecordType::file) {
    file_seen_ = true;
  } else if (header.type != RecordType::frame || file_seen_) {
    return failed(errc::malformed_payload, "a record that does not belong here");
  } else {
    ++frames_;
  }
  return record;
}

Checked<void> DeltaFileReader::close(const Record& record) {
  auto end = EndPayload::decode(record.payload());
  if (!end) return failed(end.error());
  if (end->frame_count != frames_) {
    return failed(errc::malformed_payload, "END counts " + std::to_string(end->frame_count) + " frames, the file has " +
                                               std::to_string(frames_));
  }
  if (end->layout_digest != begin_.layout_digest)
    return failed(errc::malformed_payload, "BEGIN and END differ in layout");
  auto more = read_record();
  if (!more) return more.error();
  if (*more != nullptr) return failed(errc::trailing_bytes, "a record after END");
  end_ = std::move(*end);
  return {};
}

}  // namespace deltarelay::codec
