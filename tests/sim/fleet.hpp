// A whole fleet in one thread: protocol cores, an event queue ordered by virtual time, and faults drawn from a seed.
//
// A host's image is a vector of numbers, one a block; a FRAME carries one block's new number. That is all the protocol core
// can tell from the real thing, so thousands of refits fit a second. After each event the rules of design section 3 that a
// host can break are checked: what it says it holds, it holds; a block is never anything but base or target.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "relay/core/node.hpp"

namespace deltarelay::sim {

using relay::Instant;
using relay::Version;
using Blocks = std::vector<std::uint64_t>;

struct HostSpec {
  std::string name, parent;  ///< parent empty: the root
  std::uint32_t rank = 0;
  bool empty = false;        ///< starts without an image
};

struct Faults {
  double cut_link = 0;       ///< chance per message that its link is cut instead
  double crash = 0;          ///< chance per tick that a host other than the root crashes and restarts
  double crash_root = 0;     ///< the same for the root, which loses the end of its log unless that was synced
};

class Fleet {
 public:
  Fleet(std::vector<HostSpec> hosts, std::size_t block_count, std::uint64_t seed, Faults faults = {});
  ~Fleet();

  /// Root, once it can: publish content in which `changed` blocks differ from its image. Returns the version it will have.
  Version publish(std::size_t changed);
  void abort(Version version);
  /// Runs until `done` holds or `limit` of virtual time has passed. True when it holds.
  bool run_until(const std::function<bool()>& done, relay::Duration limit);
  void crash(const std::string& host);
  /// The root restarts without ledger and log: its image is version 1 of a new history.
  void wipe_root();
  /// It dies and is not started again.
  void lose(const std::string& host);
  /// An operator asks this host to verify itself and all below it. Over: host's node().verify_over().
  void verify(const std::string& host);
  /// Something else writes to a block of the host's image.
  void damage(const std::string& host, std::size_t block);
  /// The same while the host is idle, when the rule that it holds what it says would notice at once: not checked of it any more.
  void damage_at_rest(const std::string& host, std::size_t block);
  /// Messages on the link between these two take this long from now on.
  void delay(const std::string& a, const std::string& b, relay::Duration latency);
  void stop_faults() { faults_ = {}; }

  [[nodiscard]] const relay::Node& node(const std::string& host) const;
  /// Every host holds the content that was published last under this number.
  [[nodiscard]] bool all_at(Version version) const;
  [[nodiscard]] bool holds(const std::string& host, Version version) const;
  [[nodiscard]] Instant now() const noexcept { return now_; }
  /// Virtual time at which the host first applied a frame of this version; at which the root produced its END.
  [[nodiscard]] std::optional<Instant> first_applied(const std::string& host, Version version) const;
  [[nodiscard]] std::optional<Instant> end_produced(Version version) const;
  /// A line a host: what it says of itself. For messages of failed tests.
  [[nodiscard]] std::string describe() const;
  /// First broken rule, or empty.
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }

 private:
  struct Host;
  struct Link {
    std::string parent, child;
    relay::LinkId at_parent{}, at_child{};
    bool open = true;
    Instant down_free{}, up_free{};
  };
  using LinkPtr = std::shared_ptr<Link>;

  void at(Instant when, std::function<void()> what);
  void start(Host& host);
  void tick(const std::string& name);
  void feed(Host& host, const relay::Event& event);
  void perform(Host& host, const relay::Action& action);
  void later(Host& host, relay::Duration delay, relay::Event event);
  void connect(Host& child, const std::string& parent);
  void cut(const LinkPtr& link, const std::string& why);
  void transmit(Host& from, relay::LinkId link, std::size_t bytes, bool data, std::function<void(Host&, relay::LinkId)> deliver);
  void apply(Host& host, relay::LogPosition position);
  void produce(Host& host, std::uint64_t generation, Version version, std::size_t next_change);
  void produce_end(Host& host, Version version);
  void check(const Host& host);
  [[nodiscard]] bool is_wanted(const Host& host, std::uint64_t block, std::uint64_t value, bool in_flight) const;
  void produce_begin(Host& host, Version version, Version base);
  void cut_log(Host& root);
  void set_first_version(Host& host);
  [[nodiscard]] const Blocks& committed_content(const Host& host) const;
  codec::RecordPtr seal(const Host& root, Version version, codec::RecordType type, std::uint64_t sequence,
                        std::vector<std::byte> payload) const;
  codec::Digest remember(const Blocks& blocks);
  [[nodiscard]] bool chance(double p) { return p > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < p; }

  struct Scheduled {
    Instant when;
    std::uint64_t order;
    std::shared_ptr<std::function<void()>> what;
    bool operator>(const Scheduled& other) const { return std::tie(when, order) > std::tie(other.when, other.order); }
  };

  std::vector<HostSpec> specs_;
  std::map<std::string, std::unique_ptr<Host>> hosts_;
  std::string root_;
  std::map<codec::Digest, Blocks> contents_;  // by digest of the image: what a host says, it must hold
  std::map<Version, codec::Digest> published_;
  std::map<std::pair<Version, codec::Epoch>, codec::Digest> targets_;
  std::vector<std::size_t> changes_;  // of the refit that is being encoded
  std::map<std::pair<std::string, std::string>, relay::Duration> latency_;
  std::map<std::pair<std::string, Version>, Instant> first_applied_;
  std::map<Version, Instant> end_produced_;
  std::priority_queue<Scheduled, std::vector<Scheduled>, std::greater<>> queue_;
  std::mt19937_64 random_;
  Faults faults_;
  Instant now_{};
  std::uint64_t order_ = 0, links_made_ = 0;
  bool encode_stopped_ = false;
  std::string violation_;
};

}  // namespace deltarelay::sim
