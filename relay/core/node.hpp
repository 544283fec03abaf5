// One node of the mesh, without its machine: takes events and the time, returns actions.
//
// Layer: relay/core, the whole of the protocol. Called on one strand; no sockets, files, threads or clocks, so that a
// simulator can run a fleet in one thread. The shell (relay/shell.hpp) performs the actions in order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "relay/core/actions.hpp"
#include "relay/core/block_sync.hpp"
#include "relay/core/child_session.hpp"
#include "relay/core/log_index.hpp"
#include "relay/core/reattach.hpp"
#include "relay/core/refit_node.hpp"
#include "relay/core/refit_root.hpp"
#include "relay/core/reports.hpp"
#include "relay/core/verify_round.hpp"

namespace deltarelay::relay {

struct NodeConfig {
  std::string name;
  codec::MeshId mesh;
  bool is_root = false;
  std::uint32_t rank = 0;
  std::vector<Candidate> candidates;   ///< parents in plan order
  std::vector<std::string> expected;   ///< root: every node of the plan, itself included
  CommitPolicy policy;
  std::uint64_t boot_id = 0;           ///< random
  std::uint64_t boot_count = 0;        ///< from the ledger; grows with each start
  Epoch epoch{};                       ///< root: its own; others: the highest known
  Version highest_used{};              ///< root: no version up to here is given again
  std::uint64_t seed = 0;              ///< of the back-off jitter
  std::size_t children_max = 64;
  std::uint64_t child_window_bytes = 8u << 20;
  std::uint64_t apply_window_bytes = 64u << 20;
  std::size_t refits_kept = 3;         ///< decided refits that stay in the log, within
  std::uint64_t log_bytes_max = UINT64_MAX;
  Duration heartbeat = std::chrono::seconds(1);
  Duration report_interval = std::chrono::milliseconds(200);
  Reattach::Options reattach;
};

/// What the root's ledger said of a refit that a previous process did not finish.
struct PendingRefit {
  Version version{}, base{};
  std::optional<bool> decision;
};

class Node {
 public:
  explicit Node(NodeConfig config);

  /// Before start(): one record of the log that survived a restart, in order.
  void restore(const codec::RecordPtr& record);
  /// Before start(), root only.
  void restore_pending(PendingRefit pending) { pending_ = pending; }

  [[nodiscard]] Actions handle(const Event& event, Instant now);

  // --- what operators see
  [[nodiscard]] const NodeConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::map<std::string, NodeRecord> records() const { return reports_.all(); }
  [[nodiscard]] const RefitSummary& refit() const noexcept { return root_.summary(); }
  [[nodiscard]] const CommitPolicy& policy() const noexcept { return root_.policy(); }
  [[nodiscard]] const LogIndex& log() const noexcept { return log_; }
  [[nodiscard]] const ImageState& image() const noexcept { return image_; }
  [[nodiscard]] const BlockSync& sync() const noexcept { return sync_; }
  [[nodiscard]] const RefitNode& refit_node() const noexcept { return refit_; }
  [[nodiscard]] const VerifyRound& verify() const noexcept { return verify_; }
  /// Nobody is waited for any more, or no round has begun.
  [[nodiscard]] bool verify_over() const { return verify_.over(reports_, now_); }
  [[nodiscard]] Epoch epoch() const noexcept { return epoch_; }
  [[nodiscard]] const std::map<LinkId, ChildSession>& children() const noexcept { return children_; }

 private:
  enum class ParentPhase : std::uint8_t { none, connecting, greeting, attached };

  void on(const LinkUp& event);
  void on(const LinkClosed& event);
  void on(const ConnectFailed& event);
  void on(const MessageArrived& event);
  void on(const FrameReceived& event);
  void on(const FrameRejected& event);
  void on(const RecordSent& event);
  void on(const Tick& event);
  void on(const ImageOpened& event);
  void on(const ImageFailed& event);
  void on(const EnginesAwaited& event);
  void on(const LogFailed& event);
  void on(const MarkFailed& event);
  void on(const FrameApplied& event);
  void on(const ImageSynced& event);
  void on(const CommitSaved& event);
  void on(const BaseCompared& event);
  void on(const SyncPrepared& event);
  void on(const SyncCompared& event);
  void on(const SyncBlocksApplied& event);
  void on(const SyncFailed& event);
  void on(const SyncBlocksSent& event);
  void on(const PublishRequested& event);
  void on(const AbortRequested& event);
  void on(const ManifestSaved& event);
  void on(const RecordProduced& event);
  void on(const EncodeEnded& event);
  void on(const DecisionSaved& event);
  void on(const VerifyRequested& event);
  void on(const VerifyProgress& event);
  void on(const ImageVerified& event);

  void message(LinkId link, const Hello& hello);
  void message(LinkId link, const Welcome& welcome);
  void message(LinkId link, const Heartbeat& heartbeat);
  void message(LinkId link, const Report& report);
  void message(LinkId link, const AskAgain& ask);
  void message(LinkId link, const Resume& resume);
  void message(LinkId link, const Closing& closing);
  void message(LinkId link, const SyncManifestRequest& request);
  void message(LinkId link, const SyncManifest& manifest);
  void message(LinkId link, const SyncDigests& digests);
  void message(LinkId link, const SyncBlocksRequest& request);
  void message(LinkId link, const SyncBlocks& blocks);
  void message(LinkId link, const SyncUnavailable& unavailable);
  void message(LinkId link, const SyncFile& file);
  void message(LinkId link, const VerifyOrder& order);
  void message(LinkId link, const VerifyResults& results);

  template <class StoreEvent>
  void notice_replaced_image(const StoreEvent& event);
  [[nodiscard]] bool append(const codec::RecordPtr& record);
  void become_if_history_differs();
  void leave_history();
  void answer_early_hellos();
  void part_from_other_histories();
  void end_orphans();
  void drop_old_refits();
  void start_refit_if_due();
  void stream_from_parent();
  void send_manifests();
  void serve_blocks();
  void finish_sync_if_complete();
  void report(bool now);
  void note_trouble(const NodeRecord& self);
  void begin_verify(const VerifyOrder& order);
  void ask_to_verify(LinkId child);
  void step_verify();
  void conclude_verify();
  [[nodiscard]] VerifyObstacle in_the_way_of_verify() const;
  void ask_again(LogPosition from);
  void close(LinkId link, std::string code, std::string text);
  [[nodiscard]] NodeRecord describe() const;
  [[nodiscard]] ResumePoint resume_point() const;
  [[nodiscard]] bool ready_to_publish() const;
  [[nodiscard]] Epoch image_epoch() const { return image_.end_record ? image_.end_record->header.epoch : Epoch{}; }
  [[nodiscard]] Epoch history_epoch() const;
  [[nodiscard]] std::optional<LinkId> parent_link() const;
  [[nodiscard]] bool is_parent(LinkId link) const { return parent_link_ == link && parent_phase_ != ParentPhase::none; }
  [[nodiscard]] const RefitEntry* current() const { return log_.find(refit_.version()); }
  [[nodiscard]] const RefitEntry* refit_of_root() const { return log_.find(root_.summary().version); }
  [[nodiscard]] Sequence next_of_refit() const;

  NodeConfig config_;
  Epoch epoch_{};
  ImageState image_;
  bool image_open_ = false;
  bool image_retryable_ = true;
  std::string image_error_code_, image_error_text_, log_error_code_, log_error_text_;
  std::string wait_code_, wait_text_;  // for engines
  std::string noted_code_;             // of the trouble that an operator was told of and that is not over
  LogIndex log_;
  RefitNode refit_;
  BlockSync sync_;
  Reports reports_;
  Reattach reattach_;
  RefitRoot root_;
  std::optional<PendingRefit> pending_;
  std::optional<Instant> orphan_since_;  // a node waits in a refit that this root will never end
  VerifyRound verify_;
  std::optional<std::uint64_t> verify_request_;  // of the round that was asked for here
  std::uint64_t verifies_asked_ = 0;

  ParentPhase parent_phase_ = ParentPhase::none;
  std::optional<LinkId> parent_link_;
  std::string parent_;
  std::optional<LogPosition> asked_;
  std::uint64_t attachments_ = 0;
  std::map<LinkId, ChildSession> children_;
  Instant now_{}, heartbeat_at_{}, report_at_{}, greeted_at_{};
  Actions out_;
};

}  // namespace deltarelay::relay
