// The machine around the protocol core: performs the core's actions with sockets, files, threads and clocks, and feeds
// it what happens. It decides nothing.
//
//   links, admin (I/O threads) --+                      +--> links, log writer, apply queue, state thread, encoder
//                                +--> core strand: Node +
//   log, image, encoder (theirs)-+      (events in)     (actions out)
//
// Threads: the core and everything without a word of its own belong to the core strand, which runs on the I/O threads.
// The state thread owns the ledger. Order of calls: construct, start(), stop(); the io_context runs from before start()
// until after stop(), on threads that do not call either.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "config/relayd_config.hpp"
#include "relay/admin/fleet_view.hpp"
#include "relay/core/node.hpp"
#include "relay/net/connector.hpp"
#include "relay/net/listener.hpp"
#include "relay/shell/apply_queue.hpp"
#include "relay/shell/engine_wait.hpp"
#include "relay/shell/host_store.hpp"
#include "relay/shell/image_verifier.hpp"
#include "relay/shell/log_writer.hpp"
#include "relay/shell/outbox.hpp"
#include "relay/shell/sync_store.hpp"
#include "relay/source/refit_producer.hpp"
#include "topology/plan.hpp"

namespace deltarelay::relay {

/// All that a daemon is made of once its files were found to be right.
struct ShellParts {
  config::RelaydConfig config;
  topology::Model model;
  topology::Plan plan;
  std::shared_ptr<net::TlsContext> tls;
  std::unique_ptr<HostStore> store;
};

/// The outcome of an operator's request: an empty code means success.
struct RequestResult {
  Version version{};
  std::string code, text;
};

class Shell {
 public:
  Shell(boost::asio::io_context& io, ShellParts parts);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Listens, opens the image in the background, begins to look for a parent. Error: the port is taken.
  [[nodiscard]] codec::Checked<void> start();
  /// Says good-bye to peers, lets what is being written end, stops every thread. Blocks; bounded. Idempotent.
  void stop();
  /// Certificates again from their files. Open links keep theirs.
  [[nodiscard]] codec::Checked<void> reload_certificates() { return parts_.tls->reload(); }

  // --- for the admin API; any thread
  [[nodiscard]] boost::asio::any_io_executor executor() const { return core_; }
  [[nodiscard]] const ShellParts& parts() const noexcept { return parts_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return listener_->port(); }
  /// Calls `done` on the core strand, once.
  using Done = std::function<void(RequestResult)>;
  /// Root: checks the export, then publishes it. `done` comes when the refit is accepted or refused.
  void publish(const std::string& directory, std::optional<Version> version, std::string policy, Done done);
  void abort(Version version, std::string why, Done done);
  /// Compares the images of this node and of all below it with their ledgers. `begun` on the core strand when the
  /// question is accepted, `done` when nobody is waited for any more; refused: `done` alone.
  void verify(bool deep, std::function<void()> begun, Done done);
  /// Root: what publishing would send. `done` on a thread of the shell's.
  void estimate(const std::string& directory, std::function<void(codec::Checked<RefitEstimate>)> done);

  // --- for the admin API; core strand only
  [[nodiscard]] admin::FleetInput fleet() const;
  [[nodiscard]] const Node& node() const noexcept { return *node_; }
  [[nodiscard]] const admin::History& history() const noexcept { return history_; }

 private:
  struct LinkEntry {
    std::shared_ptr<net::Link> link;
    std::shared_ptr<Outbox> outbox;
    std::string peer;
    bool to_parent = false;
  };

  [[nodiscard]] NodeConfig node_config() const;
  void restore_log();
  void open_image_soon();
  void open_image_now();  // state thread
  void watch_image();     // state thread
  void tick();
  void feed(Event event);  // any thread
  void handle(const Event& event);
  void on_core(std::function<void()> work);
  void on_state(std::function<void()> work);
  void feed_from_state(std::function<Event()> work);
  void after_handling();
  void keep_history(admin::VersionRow row);
  void note(Note::Level level, std::string code, std::string text);

  // shell_links.cpp
  [[nodiscard]] net::LinkEnvironment link_environment();
  void add_link(std::shared_ptr<net::Link> link, bool to_parent);
  void connected(const ConnectTo& target, net::ConnectResult result);
  void record_arrived(LinkId id, codec::RecordPtr record, net::ByteHold hold);
  void link_ended(LinkId id, const net::LinkEnd& end);
  void send_later(LinkId link, Outbox::Job job, Outbox::Sent sent = {});
  void perform(const ConnectTo& action);
  void perform(const CloseLink& action);
  void perform(const SendMessage& action);
  void perform(const SendRecord& action);
  void perform(const SendSyncDigests& action);
  void perform(const SendSyncBlocks& action);
  void perform(const SendSyncFiles& action);
  void send_files(LinkId link);

  // shell_store.cpp
  void hold_engines(std::string what, std::function<void()> then);  // state thread
  void release_engines();                                           // state thread
  void flush_image();                                               // any thread
  void save_synced(SaveSynced action);                              // state thread
  void files_came();                                                // state thread
  void perform(const AppendRecord& action);
  void perform(const DropRefit& action);
  void perform(const MarkApplying& action);
  void perform(const ApplyRecord& action);
  void perform(const SyncImage& action);
  void perform(const SaveCommit& action);
  void perform(const CompareWithBase& action);
  void perform(const ReopenImage& action);
  void perform(const PrepareSync& action);
  void perform(const StoreSyncDigests& action);
  void perform(const ApplySyncBlocks& action);
  void perform(const ApplySyncFile& action);
  void perform(const SaveSynced& action);

  // shell_root.cpp
  [[nodiscard]] codec::BlockReader base_reader() const;
  void publish_checked(std::uint64_t request, PublishRequested event,
                       codec::Checked<std::shared_ptr<const Export>> checked);
  void perform(const SaveManifest& action);
  void perform(const SealBegin& action);
  void perform(const StartEncode& action);
  void perform(const StopEncode& action);
  void perform(const SaveDecision& action);
  void perform(const Answer& action);

  // shell_verify.cpp
  [[nodiscard]] StoreResult<VerifyReport> verify_own_image(bool deep, const VerifyWatch& watch) const;
  void perform(const VerifyImage& action);
  void perform(const StopVerify& action);

  void perform(const Note& action);

  boost::asio::io_context& io_;
  ShellParts parts_;
  boost::asio::strand<boost::asio::io_context::executor_type> core_;
  net::ByteBudget budget_;  // before the pools: what they still have to do may hold a share of it
  boost::asio::thread_pool cpu_, readers_, state_{1}, flusher_{1};
  std::atomic<bool> stopping_{false};

  net::TaskGroup tasks_;
  std::shared_ptr<net::Listener> listener_;
  std::map<LinkId, LinkEntry> links_;
  std::uint64_t links_made_ = 0;
  std::map<const codec::Record*, net::ByteHold> holds_;  // of the record being handled
  std::shared_ptr<net::ByteHold> message_hold_;          // of the link message being handled; never null
  std::promise<void> links_gone_;
  bool links_gone_told_ = false;

  std::unique_ptr<Node> node_;
  std::unique_ptr<LogWriter> log_writer_;
  std::unique_ptr<ApplyQueue> apply_queue_;
  SyncReceiver sync_receiver_;                   // state thread
  std::optional<SaveSynced> waiting_for_files_;  // state thread
  std::vector<LinkId> children_without_files_;   // state thread
  EngineWait engine_wait_;                       // state thread
  bool watching_image_ = false;                  // state thread; from ImageOpened to the first file that is another one
  std::unique_ptr<RefitProducer> producer_;
  ImageVerifier verifier_;

  std::uint64_t requests_made_ = 0;
  std::map<std::uint64_t, Done> requests_;
  std::map<std::string, std::shared_ptr<const Export>> exports_;  // checked, about to be encoded; by directory

  boost::asio::steady_timer tick_timer_, image_timer_, files_timer_, watch_timer_;
  admin::RateMeter rates_;
  admin::History history_;
  admin::Time started_{};
  std::uint64_t ticks_ = 0;
  std::pair<Version, RefitSummary::Phase> history_phase_{};
  bool history_closed_ = false;
  bool stopped_ = false;
};

}  // namespace deltarelay::relay
