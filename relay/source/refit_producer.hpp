// The root's encoder at work: an export against the image, on threads of its own, into sealed records in order.
//
// Records leave while later blocks are still being read: BEGIN, FRAME…, FILE…, END. Bound: records given out and not
// yet written() stay below `unwritten_bytes_max`, so a slow disk slows the encoder and nothing else. Threads: start(),
// cancel() and join() belong to one thread; written() and progress() to any; `feed` is called from the encoder's
// threads.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "codec/refit_encoder.hpp"
#include "codec/signature.hpp"
#include "relay/core/events.hpp"
#include "relay/source/export.hpp"

namespace deltarelay::relay {

/// One refit to be produced.
struct RefitOrder {
  Version version{}, base{};
  Epoch epoch{};
  codec::MeshId mesh;
  codec::Digest base_image;
  codec::BlockReader read_base;
  std::vector<codec::Digest> base_digests;
  std::vector<codec::CompanionFile> base_companions;  ///< what need not travel again
  std::shared_ptr<const Export> source;
  codec::ContentSigner signer;
};

/// Of a refit from `base`, whose image has this digest.
[[nodiscard]] codec::BeginPayload begin_payload(const codec::Layout& layout, Version base,
                                                const codec::Digest& base_image);

/// What encoding an export would send, without sending it.
struct RefitEstimate {
  codec::FrameStats stats;
  std::uint64_t payload_bytes = 0;
};
[[nodiscard]] codec::Checked<RefitEstimate> estimate_refit(const codec::BlockReader& read_base,
                                                           std::span<const codec::Digest> base_digests,
                                                           const Export& source, unsigned threads,
                                                           codec::RefitControl& control);

class RefitProducer {
 public:
  using Feed = std::function<void(Event)>;
  struct Options {
    unsigned threads = 1;
    std::uint64_t unwritten_bytes_max = 64u << 20;
  };
  RefitProducer(Options options, Feed feed) : options_(options), feed_(std::move(feed)) {}
  ~RefitProducer() { join(); }

  /// -> RecordProduced…, then EncodeEnded once. Waits for a predecessor that was cancelled.
  void start(RefitOrder order);
  /// EncodeEnded follows soon.
  void cancel();
  /// Until EncodeEnded was fed.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  /// cancel() and wait().
  void join();
  /// A record of so many bytes has been written to the log (or dropped).
  void written(std::uint64_t bytes);
  [[nodiscard]] const codec::RefitControl& progress() const noexcept { return *control_; }

 private:
  class Sealer;
  void run(const RefitOrder& order);
  void acquire(std::uint64_t bytes);

  Options options_;
  Feed feed_;
  std::unique_ptr<codec::RefitControl> control_ = std::make_unique<codec::RefitControl>();
  std::mutex mutex_;
  std::condition_variable room_;
  std::uint64_t unwritten_bytes_ = 0;
  std::thread thread_;
};

}  // namespace deltarelay::relay
