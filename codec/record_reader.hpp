// Bytes in any pieces in, records out: for delta files, log segments and tests.
//
// Holds at most one unfinished record, and of that no more than has arrived. Record types unknown to this release are
// skipped by their length and counted. A torn tail (the writer died: the input ends inside a record) is told apart from
// damage (bytes that are no record): only finish() reports the first, only read() the second; offset() says where.
// Checks headers' structure alone; signature and SHA-256 are the caller's (verify_record, verify_record_payload).
#pragma once

#include <cstdint>
#include <vector>

#include "codec/record.hpp"

namespace deltarelay::codec {

class RecordReader {
 public:
  enum class Accept { log_records, log_records_and_link_messages };
  explicit RecordReader(Accept accept = Accept::log_records) noexcept : accept_(accept) {}

  /// Takes bytes from the front of `in` until one record is complete and returns it; null when all of `in` was taken
  /// and more is needed. Call again with the same `in` for the next record.
  /// Errors: as decode_record_header() except truncated. After an error the reader is of no further use.
  [[nodiscard]] Result<RecordPtr> read(Bytes& in);

  /// The input has ended: ok between two records, `truncated` inside one (a torn tail that begins at offset()).
  [[nodiscard]] Result<void> finish() const noexcept;

  /// Where in the input the record that is being read begins.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t skipped_records() const noexcept { return skipped_records_; }

 private:
  void take(Bytes& in, std::size_t wanted_size);
  [[nodiscard]] bool is_wanted(RecordType type) const noexcept;
  [[nodiscard]] Result<void> begin_payload();

  Accept accept_;
  std::vector<std::byte> bytes_;  // header and what has come of the payload
  RecordHeader header_;
  bool header_known_ = false;
  std::uint32_t skip_bytes_ = 0;  // rest of an unknown record
  std::uint64_t offset_ = 0;
  std::uint64_t skipped_records_ = 0;
};

}  // namespace deltarelay::codec
