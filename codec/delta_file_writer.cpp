#include <fcntl.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "codec/delta_file.hpp"

namespace deltarelay::codec {

DeltaFileWriter::DeltaFileWriter(std::filesystem::path path, const DeltaIdentity& identity, const ContentSigner* signer)
    : path_(std::move(path)), partial_(path_.string() + ".partial"), identity_(identity), signer_(signer) {}

DeltaFileWriter::~DeltaFileWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

Failure DeltaFileWriter::failed(const char* what) const {
  return {errc::io_error, partial_.string(), std::string(what) + ": " + std::strerror(errno)};
}

Checked<std::unique_ptr<DeltaFileWriter>> DeltaFileWriter::create(const std::filesystem::path& path,
                                                                  const DeltaIdentity& identity,
                                                                  const ContentSigner* signer) {
  std::unique_ptr<DeltaFileWriter> out(new DeltaFileWriter(path, identity, signer));
  out->file_ = std::fopen(out->partial_.c_str(), "wbe");
  if (out->file_ == nullptr) return out->failed("cannot create the delta file");
  // Room for BEGIN, whose size does not depend on its content.
  const std::vector<std::byte> room(record_header_bytes + BeginPayload{}.encode().size());
  if (auto written = out->write(room); !written) return written.error();
  return out;
}

Checked<void> DeltaFileWriter::write(Bytes bytes) {
  if (failure_) return *failure_;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    failure_ = failed("cannot write the delta file");
    return *failure_;
  }
  bytes_ += bytes.size();
  return {};
}

RecordPtr DeltaFileWriter::seal(RecordType type, Sequence sequence, Bytes payload) const {
  RecordHeader header;
  header.type = type;
  header.mesh = identity_.mesh;
  header.epoch = identity_.epoch;
  header.version = identity_.version;
  header.sequence = sequence;
  return seal_record(header, payload, signer_);
}

// The sequence is under the signature, so sealing happens in turn.
Checked<void> DeltaFileWriter::append(RecordType type, Bytes payload) {
  const std::scoped_lock lock(mutex_);
  assert(file_ != nullptr);
  const RecordPtr record = seal(type, next_, payload);
  next_ = codec::next(next_);
  return write(record->bytes);
}

Checked<void> DeltaFileWriter::add_frame(const EncodedFrame& frame) {
  return append(RecordType::frame, frame.payload);
}

Checked<void> DeltaFileWriter::add_file(const FilePayload& file) {
  const std::vector<std::byte> payload = file.encode();
  if (payload.size() > payload_bytes_max(RecordType::file)) {
    return Failure{errc::payload_too_large, file.name, std::to_string(payload.size()) + " bytes"};
  }
  return append(RecordType::file, payload);
}

Checked<void> DeltaFileWriter::finish(const BeginPayload& begin, const EndPayload& end) {
  if (auto written = append(RecordType::end, end.encode()); !written) return written;
  const std::scoped_lock lock(mutex_);
  const RecordPtr first = seal(RecordType::begin, Sequence{0}, begin.encode());
  if (std::fseek(file_, 0, SEEK_SET) != 0) return failed("cannot go back to the front of the delta file");
  bytes_ -= first->bytes.size();
  if (auto written = write(first->bytes); !written) return written;
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) return failed("cannot write the delta file to disk");
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) return failed("cannot give the delta file its name");
  std::fclose(file_);
  file_ = nullptr;
  return {};
}

std::uint64_t DeltaFileWriter::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

}  // namespace deltarelay::codec
