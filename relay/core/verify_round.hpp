// One round of `relayctl verify` as one node sees it: its own image, and what is known of the nodes below it.
//
// Layer: relay/core. The same machine on the node that an operator asked, on those that pass the question on, and on
// leaves. Own image:
//
//   waiting <-> reading -> ok | damaged | failed
//      |
//      +--> busy (patience is over, or a refit began each time) | failed (patience is over, and it is broken)
//
// Nothing is compared while the image is written: a reading that a write begins under is given up before the first
// block changes, and its answer, should it still come, is one of another attempt. One round at a time; the newest
// replaces the one before. Bounded: a row a node that Reports knows. A round ends by answers or by silence, never by
// hope.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "relay/core/actions.hpp"
#include "relay/core/node_record.hpp"
#include "relay/core/reports.hpp"

namespace deltarelay::relay {

/// Why the image cannot be read now; an empty text: it can.
struct VerifyObstacle {
  std::string text;
  bool broken = false;  ///< it could not be opened, and is not just being written
};

class VerifyRound {
 public:
  struct Row {
    VerifyResult result;
    Instant heard{};
  };

  VerifyRound(std::string self, std::uint64_t boot_count) : self_(std::move(self)), serial_(first_of_boot(boot_count)) {}

  /// Whoever can be reached now is waited for; whoever is lost already is not.
  void begin(const VerifyOrder& order, const Reports& reports, Instant now, Actions& out);
  /// What a child says. Dropped: another round's, news of nodes that nobody reported, and what is older than what is
  /// known.
  void merge(const VerifyResults& message, const Reports& reports, Instant now);
  /// Asks for the image to be read, or for that to stop. What is in the way at the end of the patience makes it busy,
  /// or failed when it is broken.
  void step(const VerifyObstacle& in_the_way, Version version, Instant now, Actions& out);
  void on(const VerifyProgress& event, Instant now);
  void on(const ImageVerified& event, Instant now);
  /// No more news is taken. Of the node that was asked, when over().
  void close(Instant now);

  /// A new parent knows nothing yet.
  void mark_all();
  [[nodiscard]] bool pending() const noexcept { return !untold_.empty(); }
  /// What the parent lacks, at most `max`; marks it as told.
  [[nodiscard]] std::vector<VerifyResult> take(std::size_t max);

  [[nodiscard]] bool begun() const noexcept { return order_.round != 0; }
  /// This node has not said its last word.
  [[nodiscard]] bool working() const noexcept { return begun() && !own_.final(); }
  /// Nobody is waited for any more.
  [[nodiscard]] bool over(const Reports& reports, Instant now) const;
  [[nodiscard]] const VerifyOrder& order() const noexcept { return order_; }
  [[nodiscard]] Instant began() const noexcept { return began_; }
  [[nodiscard]] std::optional<Instant> closed() const noexcept { return closed_; }
  /// Its own row, and of every node that was asked or has answered.
  [[nodiscard]] const std::map<std::string, Row>& rows() const noexcept { return rows_; }

  static constexpr Duration patience = std::chrono::seconds(30);         ///< for a write to end
  static constexpr Duration silence_max = std::chrono::seconds(30);      ///< of a node that is connected
  static constexpr Duration lost_grace = std::chrono::seconds(5);        ///< for one that is not to find another way
  static constexpr Duration waiting_interval = std::chrono::seconds(2);  ///< between two signs of life while waiting
  static constexpr std::uint64_t attempts_max = 3;

 private:
  void say(VerifyState state, std::string text, Instant now);
  [[nodiscard]] bool settled(const std::string& name, const Row& row, const Reports& reports, Instant now) const;

  std::string self_;
  std::uint64_t serial_;
  VerifyOrder order_;
  Instant began_{};
  std::optional<Instant> closed_;
  std::map<std::string, Row> rows_;
  std::set<std::string> untold_;

  VerifyResult own_;
  bool reading_ = false;
  std::uint64_t attempt_ = 0;  // over the node's life, so that no answer is taken for another's
  std::uint64_t attempts_of_round_ = 0;
  Instant waits_since_{}, said_at_{};
};

/// No way up from `name` to this node, as far as its reports say.
[[nodiscard]] bool lost_from_sight(const Reports& reports, const std::string& name);

}  // namespace deltarelay::relay
