// The log of refits: verified records per version and stripe, in order, in segment files that hold them as on the wire.
//
// publish() makes a record readable at once (one thread: the core's); write() puts it into its segment (one writer
// thread, in order); read() serves children and the applier from a bounded cache or the segment. All calls are
// thread-safe. Invariants: sequences of a stripe begin at 0 and have no hole; a record published but not yet written is
// always in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codec/limits.hpp"
#include "codec/record.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

struct LogLimits {
  std::uint64_t segment_bytes_max = 256 * codec::mib;
  std::uint64_t cache_bytes_max = 64 * codec::mib;  ///< of records already written
};

/// One place where recovery had to cut a stripe.
struct LogCut {
  std::string path;
  std::uint64_t offset = 0;
  bool torn_tail = false;  ///< normal after a crash; false: damage with more data behind it
  std::string why;
};

class RefitLog {
 public:
  /// Whether a record read back after a start is one that the root signed. Its payload's SHA-256 holds already.
  using RecordCheck = std::function<bool(const codec::Record&)>;

  /// Opens or makes `directory`, re-reads every header, checks every SHA-256 and asks `is_genuine` (none: all are). A
  /// stripe ends before the first record that does not hold. Cuts are in cuts().
  [[nodiscard]] static StoreResult<std::unique_ptr<RefitLog>> open(std::filesystem::path directory, LogLimits limits,
                                                                   FileOps& ops = FileOps::real(),
                                                                   const RecordCheck& is_genuine = {});

  /// Errors: out_of_order unless the record has sequence 0 or follows the last one published.
  [[nodiscard]] StoreResult<void> publish(codec::RecordPtr record);
  /// REQUIRES the very object that was published, and its predecessors written. After an error the record stays in
  /// memory: call again. One whose refit was forgotten meanwhile is skipped, also when another has taken its place.
  [[nodiscard]] StoreResult<void> write(const codec::RecordPtr& record);
  /// Errors: not_in_log, corrupt, and those of the file system.
  [[nodiscard]] StoreResult<codec::RecordPtr> read(codec::Version version, codec::StripeId stripe, codec::Sequence sequence);
  /// What was written before this call is durable after it. A failure stays one until the refit is forgotten.
  [[nodiscard]] StoreResult<void> sync();
  /// Every record on disk, by version, stripe and sequence. Stops at the first failure to read.
  [[nodiscard]] StoreResult<void> for_each_recovered(const std::function<void(const codec::RecordPtr&)>& fn);
  /// The refit is not in the log any more, and one of the same version may be published. Its files stay: give them to
  /// remove() before a record of that one is written.
  [[nodiscard]] std::vector<std::filesystem::path> forget(codec::Version version);
  [[nodiscard]] StoreResult<void> remove(const std::vector<std::filesystem::path>& forgotten);
  /// Bytes in segments.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Bytes published but not yet written. They are all in memory: a caller that stops publishing past a bound bounds it.
  [[nodiscard]] std::uint64_t unwritten_bytes() const;
  /// The oldest refits before `keep_from` whose forget() and remove() bring bytes() to `bytes_max`, or all of them if none suffices.
  [[nodiscard]] std::vector<codec::Version> to_drop(std::uint64_t bytes_max, codec::Version keep_from) const;
  [[nodiscard]] const std::vector<LogCut>& cuts() const noexcept { return cuts_; }

 private:
  struct Segment {
    File file;
    std::uint64_t bytes = 0;
    bool dirty = false;
    bool lost = false;  ///< an fsync failed: the kernel may have dropped the pages and will not say so again
  };
  struct Entry {
    std::shared_ptr<Segment> segment;  ///< null: not yet written
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    codec::RecordPtr cached;
  };
  struct Stripe {
    std::vector<Entry> entries;  ///< by sequence, from 0
    std::size_t written = 0;  ///< entries[0 .. written) are in segments
    std::vector<std::shared_ptr<Segment>> segments;
  };
  using Key = std::pair<codec::Version, codec::StripeId>;
  struct Cached {
    std::shared_ptr<Stripe> stripe;
    std::size_t index = 0;
  };

  RefitLog(std::filesystem::path directory, LogLimits limits, FileOps& ops)
      : directory_(std::move(directory)), limits_(limits), ops_(ops) {}
  [[nodiscard]] StoreResult<void> recover(const RecordCheck& is_genuine);
  [[nodiscard]] StoreResult<bool> recover_segment(const Key& key, std::uint64_t first, const std::string& name,
                                                  bool last, const RecordCheck& is_genuine);
  [[nodiscard]] StoreResult<std::shared_ptr<Segment>> segment_for(const Key& key, Stripe& stripe, std::uint64_t sequence, std::size_t bytes);
  [[nodiscard]] StoreResult<codec::RecordPtr> load(const File& file, std::uint64_t offset, std::size_t bytes);
  void evict();

  std::filesystem::path directory_;
  LogLimits limits_;
  FileOps& ops_;
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<Stripe>> stripes_;
  std::deque<Cached> written_in_cache_;
  std::uint64_t cached_bytes_ = 0;
  bool directory_dirty_ = false;
  std::vector<LogCut> cuts_;
};

}  // namespace deltarelay::relay
