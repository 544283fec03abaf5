// The log of a node: the records of its refits, per stripe and in order, as received. Children and the applier are cursors
// on it (ARCHITECTURE.md, "The log").
//
//   core thread --publish--> memory --read--> children        writer thread --append--> segments --read--> late children
//
// A record is readable from the moment it is published; it leaves memory once it is written and newer ones need its room.
// Invariants: cached_bytes() <= memory_bytes_max + unwritten_bytes(); per stripe the sequences are 0, 1, 2, … without a
// gap; a segment on disk always is a run of whole records, at most followed by one torn record, which open() cuts.
// Threads: publish/read/refits/total_bytes from any; append/sync/drop from one writer thread (drop also from the core
// thread when nothing of that version is being appended).
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codec/record.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

using codec::Epoch;
using codec::RecordPtr;
using codec::Sequence;
using codec::StripeId;
using codec::Version;

struct Segment;

struct LogOptions {
  std::uint64_t segment_bytes_max = 256 * codec::mib;
  std::uint64_t memory_bytes_max = 64 * codec::mib;
  /// Asked for each record that open() finds, after the SHA-256 held: usually codec::verify_record. May be empty.
  std::function<codec::Result<void>(const codec::Record&)> verify;
};

struct StripeInfo {
  StripeId stripe{};
  Sequence next{};        ///< first sequence that is not there
  Sequence written{};     ///< first sequence that is not in a segment yet
  bool has_end = false;
};

struct RefitInfo {
  enum class Decision : std::uint8_t { none, commit, abort };
  Version version{};
  Epoch epoch{};
  bool has_begin = false;
  Version base{};  ///< from BEGIN
  std::uint16_t stripe_count = 1;
  bool has_end = false;  ///< END of every stripe is there
  Decision decision = Decision::none;
  std::uint64_t bytes = 0;
  std::vector<StripeInfo> stripes;
};

/// What open() had to cut or found wrong.
struct LogFinding {
  std::filesystem::path path;
  std::uint64_t offset = 0;
  bool torn_tail = true;  ///< false: damage with whole records behind it; everything from `offset` on must be fetched again
  std::string what;
};

class RefitLog {
 public:
  /// Makes `directory` or recovers what is in it. Damaged records never become readable.
  [[nodiscard]] static StoreResult<std::unique_ptr<RefitLog>> open(FileOps& files, std::filesystem::path directory, LogOptions options);
  ~RefitLog();

  /// Readable at once. A record that is there already is success. Errors: record_out_of_order.
  [[nodiscard]] StoreResult<void> publish(const RecordPtr& record);
  /// Writes a published record. In order per stripe; written ones are success. After an error (ENOSPC) the log is
  /// well-formed, the record still readable from memory, and the same call may be repeated.
  [[nodiscard]] StoreResult<void> append(const RecordPtr& record);
  /// fsyncs what append() wrote. A failed fsync stays an error until the refit is dropped: the kernel forgets such pages.
  [[nodiscard]] StoreResult<void> sync();
  /// From memory or the segment; checked against its SHA-256 in the latter case. Errors: record_not_in_log, record_damaged.
  [[nodiscard]] StoreResult<RecordPtr> read(Version version, StripeId stripe, Sequence sequence) const;
  /// True when read() needs no disk.
  [[nodiscard]] bool in_memory(Version version, StripeId stripe, Sequence sequence) const;

  [[nodiscard]] std::vector<RefitInfo> refits() const;  ///< ascending versions
  [[nodiscard]] std::optional<RefitInfo> refit(Version version) const;
  /// Forgets a refit and removes its segments. Readers in the middle of a read finish it.
  [[nodiscard]] StoreResult<void> drop(Version version);
  /// Oldest refits to drop so that the log fits `bytes_max`: never `keep` or newer ones, never an undecided one.
  [[nodiscard]] std::vector<Version> to_drop(std::uint64_t bytes_max, Version keep) const;

  [[nodiscard]] std::uint64_t total_bytes() const;      ///< written and unwritten
  [[nodiscard]] std::uint64_t unwritten_bytes() const;  ///< the writer's backlog: the caller stops reading past its bound
  [[nodiscard]] std::uint64_t cached_bytes() const;
  [[nodiscard]] const std::vector<LogFinding>& findings() const noexcept { return findings_; }

 private:
  struct Stripe;
  struct Refit;
  struct Recovery;
  struct CacheEntry { Version version; StripeId stripe; Sequence sequence; };

  RefitLog(FileOps& files, std::filesystem::path directory, LogOptions options);
  [[nodiscard]] StoreResult<void> recover();
  [[nodiscard]] StoreResult<std::shared_ptr<Segment>> segment_for(Version version, StripeId stripe, std::uint64_t first, std::size_t bytes);
  void note_record(Refit& refit, Stripe& stripe, const codec::Record& record);
  void shrink_cache();
  [[nodiscard]] RefitInfo describe(Version version, const Refit& refit) const;
  const Stripe* find(Version version, StripeId stripe) const;

  FileOps& files_;
  std::filesystem::path directory_;
  LogOptions options_;
  mutable std::mutex mutex_;
  std::map<Version, std::unique_ptr<Refit>> refits_;
  std::deque<CacheEntry> cache_order_;
  std::uint64_t cached_bytes_ = 0, unwritten_bytes_ = 0;
  std::vector<LogFinding> findings_;
};

}  // namespace deltarelay::relay
