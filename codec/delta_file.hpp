// A refit as one file: BEGIN, FRAME ..., FILE ..., END, the same records as on the wire (stripe 0). Written and read by
// `relayctl delta`; applying one is relay/store's work.
//
// The writer makes "NAME.partial" and renames it when it is whole and on disk: a file of the final name is complete.
// Unsigned files (no signer) are for offline use; no daemon accepts their records.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "codec/errc.hpp"
#include "codec/frame.hpp"
#include "codec/payloads.hpp"
#include "codec/record.hpp"
#include "codec/record_reader.hpp"

namespace deltarelay::codec {

/// Who a delta file's records say they are from.
struct DeltaIdentity {
  MeshId mesh;
  Epoch epoch{};
  Version version{};
};

class DeltaFileWriter {
 public:
  /// `signer` null or outliving the writer.
  [[nodiscard]] static Checked<std::unique_ptr<DeltaFileWriter>> create(const std::filesystem::path& path,
                                                                        const DeltaIdentity& identity,
                                                                        const ContentSigner* signer);
  /// Removes the partial file unless finish() succeeded.
  ~DeltaFileWriter();
  DeltaFileWriter(const DeltaFileWriter&) = delete;
  DeltaFileWriter& operator=(const DeltaFileWriter&) = delete;

  /// May be called by several threads. After a failure, more calls fail the same way.
  [[nodiscard]] Checked<void> add_frame(const EncodedFrame& frame);
  /// After the last frame.
  [[nodiscard]] Checked<void> add_file(const FilePayload& file);
  /// Completes the file: BEGIN goes into the room kept at its front, because the base's digest may be known only now.
  [[nodiscard]] Checked<void> finish(const BeginPayload& begin, const EndPayload& end);
  /// Bytes of the file so far.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  DeltaFileWriter(std::filesystem::path path, const DeltaIdentity& identity, const ContentSigner* signer);
  [[nodiscard]] Checked<void> append(RecordType type, Bytes payload);
  [[nodiscard]] RecordPtr seal(RecordType type, Sequence sequence, Bytes payload) const;
  [[nodiscard]] Checked<void> write(Bytes bytes);
  [[nodiscard]] Failure failed(const char* what) const;

  const std::filesystem::path path_, partial_;
  const DeltaIdentity identity_;
  const ContentSigner* const signer_;
  mutable std::mutex mutex_;
  std::FILE* file_ = nullptr;
  Sequence next_{1};
  std::uint64_t bytes_ = 0;
  std::optional<Failure> failure_;
};

/// Reads a delta file in order and checks what can be checked without an image: each record's structure and SHA-256,
/// its signature when a key is given, their order, one identity, the counts of END, and that nothing follows it.
class DeltaFileReader {
 public:
  /// `verifier` null: signatures are not looked at. Reads BEGIN.
  [[nodiscard]] static Checked<std::unique_ptr<DeltaFileReader>> open(const std::filesystem::path& path,
                                                                      const ContentVerifier* verifier);
  ~DeltaFileReader();
  DeltaFileReader(const DeltaFileReader&) = delete;
  DeltaFileReader& operator=(const DeltaFileReader&) = delete;

  [[nodiscard]] const DeltaIdentity& identity() const noexcept { return identity_; }
  [[nodiscard]] const BeginPayload& begin() const noexcept { return begin_; }
  [[nodiscard]] bool is_signed() const noexcept { return signed_; }
  /// The next FRAME or FILE record, or null when END was read: then end() is there and the file was whole.
  [[nodiscard]] Checked<RecordPtr> next();
  [[nodiscard]] const std::optional<EndPayload>& end() const noexcept { return end_; }
  /// Records of types that this release does not know.
  [[nodiscard]] std::uint64_t skipped_records() const noexcept { return reader_.skipped_records(); }

 private:
  DeltaFileReader(std::filesystem::path path, std::FILE* file, const ContentVerifier* verifier);
  [[nodiscard]] Checked<RecordPtr> read_record();
  [[nodiscard]] Checked<void> read_begin();
  [[nodiscard]] Checked<void> close(const Record& record);
  [[nodiscard]] Checked<void> check(const Record& record) const;
  [[nodiscard]] Failure failed(error_code code, std::string why = {}) const;

  const std::filesystem::path path_;
  std::FILE* const file_;
  const ContentVerifier* const verifier_;
  RecordReader reader_;
  std::vector<std::byte> buffer_;
  Bytes unread_;
  std::uint64_t record_at_ = 0;
  DeltaIdentity identity_;
  BeginPayload begin_;
  bool signed_ = false, file_seen_ = false;
  std::uint64_t frames_ = 0, last_sequence_ = 0, skipped_before_ = 0;
  std::optional<EndPayload> end_;
};

}  // namespace deltarelay::codec
