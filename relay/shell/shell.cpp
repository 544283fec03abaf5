#include "relay/shell/shell.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <random>
#include <thread>

#include "relay/shell/image_opening.hpp"
#include "relay/shell/log_note.hpp"
#include "relay/shell/marker_store.hpp"
#include "relay/store/engine_lock.hpp"

namespace deltarelay::relay {
namespace {

constexpr auto tick_interval = std::chrono::milliseconds(100);
constexpr auto image_retry_after = std::chrono::seconds(10);
constexpr auto image_watch_interval = std::chrono::seconds(2);
constexpr auto goodbye_within = std::chrono::seconds(3);
constexpr unsigned reader_threads = 2;

unsigned threads_or_cores(std::uint32_t wanted) {
  return wanted != 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

admin::Time wall_clock() {
  return std::chrono::time_point_cast<admin::Time::duration>(std::chrono::system_clock::now());
}

StoreResult<bool> no_engine_reads(const std::filesystem::path& image_dir) {
  auto held = hold_engines(image_dir);
  if (!held) return held.error();
  return held->has_value();
}

std::filesystem::path history_file(const ShellParts& parts) {
  return parts.config.state_dir / "history.jsonl";
}

CommitPolicy policy_of(const config::RelaydConfig& config) {
  CommitPolicy policy;
  policy.quorum = config.commit.policy == config::CommitPolicy::all ? 1.0 : config.commit.quorum;
  policy.timeout_quorum = config.commit.quorum;
  policy.commit_if_quorum = config.commit.on_timeout == config::OnTimeout::commit_if_quorum;
  policy.prepare_timeout = config.timeouts.prepare;
  return policy;
}

}  // namespace

Shell::Shell(boost::asio::io_context& io, ShellParts parts)
    : io_(io),
      parts_(std::move(parts)),
      core_(boost::asio::make_strand(io)),
      budget_(parts_.config.limits.memory_bytes / 2),
      cpu_(std::max(1u, std::thread::hardware_concurrency())),
      readers_(reader_threads),
      tasks_([](const std::string& text) { spdlog::error("an exception escaped a link: {}", text); }),
      message_hold_(std::make_shared<net::ByteHold>()),
      sync_receiver_(*parts_.store),
      engine_wait_(state_, parts_.config.image.dir, [this](Event event) { feed(std::move(event)); }),
      verifier_([this](bool deep, const VerifyWatch& watch) { return verify_own_image(deep, watch); },
                [this](Event event) { feed(std::move(event)); }),
      tick_timer_(core_),
      image_timer_(core_),
      files_timer_(state_),
      watch_timer_(state_) {
  const auto feed_any = [this](Event event) { feed(std::move(event)); };
  log_writer_ = std::make_unique<LogWriter>(parts_.store->log(), feed_any, [this](std::uint64_t bytes) {
    if (producer_) producer_->written(bytes);
  });
  apply_queue_ = std::make_unique<ApplyQueue>(*parts_.store, parts_.store->options().apply_threads, feed_any,
                                              [this](std::function<void()> work) { on_core(std::move(work)); });
  if (parts_.store->options().is_root)
    producer_ =
        std::make_unique<RefitProducer>(RefitProducer::Options{threads_or_cores(parts_.config.limits.encode_threads),
                                                               parts_.config.limits.memory_bytes / 4},
                                        feed_any);
  node_ = std::make_unique<Node>(node_config());
  started_ = wall_clock();
}

Shell::~Shell() {
  stop();
}

NodeConfig Shell::node_config() const {
  const config::RelaydConfig& config = parts_.config;
  const LedgerRecord& ledger = parts_.store->record();
  const topology::PlanNode* self = parts_.plan.find(config.node);
  NodeConfig out;
  out.name = config.node;
  out.mesh = parts_.store->options().mesh;
  out.is_root = config.role == config::Role::root;
  out.rank = self->rank;
  for (const topology::Candidate& candidate : parts_.plan.candidates(config.node))
    out.candidates.push_back({candidate.name, candidate.address.text()});
  if (out.is_root)
    for (const topology::PlanNode& node : parts_.plan.nodes()) out.expected.push_back(node.name);
  out.policy = policy_of(config);
  out.boot_id = random_number();
  out.seed = random_number();
  out.boot_count = ledger.boot_count;
  out.epoch = ledger.epoch;
  out.highest_used = ledger.highest_used;
  out.children_max = config.limits.max_children;
  out.child_window_bytes = config.limits.child_window_bytes;
  out.apply_window_bytes = config.limits.memory_bytes / 4;
  out.log_bytes_max = config.limits.log_bytes;
  out.heartbeat = config.timeouts.heartbeat;
  return out;
}

codec::Checked<void> Shell::start() {
  const topology::PlanNode* self = parts_.plan.find(parts_.config.node);
  net::ListenerConfig listener;
  const topology::Address address = parts_.config.listen.value_or(self->address);
  boost::system::error_code not_numeric;
  boost::asio::ip::make_address(address.host, not_numeric);
  if (!not_numeric) listener.address = address.host;
  listener.port = address.port;
  listener.handshake_within = parts_.config.timeouts.handshake;
  listener.handshakes_max = parts_.config.limits.handshakes;
  listener.links_max = parts_.config.limits.max_children * 2;
  auto opened = net::Listener::open(link_environment(), parts_.tls, listener);
  if (!opened) return opened.error();
  listener_ = std::move(*opened);
  if (auto loaded = admin::load_history(FileOps::real(), history_file(parts_)))
    history_ = std::move(loaded->history);
  else
    spdlog::warn("history starts empty: {}", loaded.error().text());
  restore_log();
  on_core([this] {
    listener_->start(
        [this](std::shared_ptr<net::Link> link, const net::PeerIdentity&) { add_link(std::move(link), false); });
    open_image_soon();
    on_state([this] { watch_image(); });
    tick();
  });
  return {};
}

void Shell::restore_log() {
  HostStore& store = *parts_.store;
  for (const LogCut& cut : store.log().cuts())
    spdlog::warn("log {} cut at {}: {}{}", cut.path, cut.offset, cut.why,
                 cut.torn_tail ? " (a torn tail, normal after a crash)" : "");
  // Opening the log kept only what the root signed, so the core knows exactly the records that the log holds.
  auto read = store.log().for_each_recovered([this](const codec::RecordPtr& record) { node_->restore(record); });
  if (!read) spdlog::error("the log could not be read whole: {}", read.error().text());
  const auto& manifest = store.record().manifest;
  if (!store.options().is_root || !manifest) return;
  std::optional<bool> decision;
  if (manifest->state != ManifestState::open) decision = manifest->state == ManifestState::commit;
  node_->restore_pending(PendingRefit{manifest->version, manifest->base, decision});
}

void Shell::open_image_soon() {
  on_state([this] { open_image_now(); });
}

void Shell::open_image_now() {
  const Event event = open_image(*parts_.store, stopping_);
  watching_image_ = std::holds_alternative<ImageOpened>(event);
  const auto* failure = std::get_if<ImageFailed>(&event);
  if (failure && failure->code == engine_reads_code && !stopping_)
    engine_wait_.start(
        "the start", [this] { return no_engine_reads(parts_.config.image.dir); }, [this] { open_image_now(); });
  else if (failure && failure->retryable)
    on_core([this] {
      image_timer_.expires_after(image_retry_after);
      image_timer_.async_wait([this](boost::system::error_code ec) {
        if (!ec && !stopping_) open_image_soon();
      });
    });
  feed(event);
}

void Shell::watch_image() {
  // An idle host has no other occasion to see that its files are not those that engines open.
  if (const auto image = parts_.store->image(); image && watching_image_)
    if (auto same = image->image().check_identity(); !same && same.error().code == store_errc::replaced) {
      watching_image_ = false;
      feed(ImageFailed{reason_code(same.error()), same.error().text(), true});
    }
  retry_marker(*parts_.store);
  watch_timer_.expires_after(image_watch_interval);
  watch_timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec && !stopping_) watch_image();
  });
}

// ------------------------------------------------------------------------------------------------ events in, actions
// out

void Shell::on_core(std::function<void()> work) {
  boost::asio::post(core_, std::move(work));
}
void Shell::on_state(std::function<void()> work) {
  boost::asio::post(state_, std::move(work));
}
void Shell::feed(Event event) {
  boost::asio::post(core_, [this, event = std::move(event)] { handle(event); });
}
void Shell::feed_from_state(std::function<Event()> work) {
  on_state([this, work = std::move(work)] { feed(work()); });
}

void Shell::handle(const Event& event) {
  if (stopping_) return;
  for (const Action& action : node_->handle(event, std::chrono::steady_clock::now()))
    std::visit([this](const auto& a) { perform(a); }, action);
  after_handling();
}

void Shell::tick() {
  handle(Tick{});
  if (ticks_++ % 10 == 0) rates_.observe(node_->records(), std::chrono::steady_clock::now());
  tick_timer_.expires_after(tick_interval);
  tick_timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec && !stopping_) tick();
  });
}

void Shell::after_handling() {
  if (!parts_.store->options().is_root) return;
  if (history_.rows().empty() && codec::raw(node_->image().version) != 0) {
    admin::VersionRow first;
    first.version = node_->image().version;
    first.at = wall_clock();
    first.dense_bytes = parts_.store->image()->layout().total_bytes();
    first.result = "first";
    keep_history(std::move(first));
  }
  const RefitSummary& refit = node_->refit();
  const std::pair now(refit.version, refit.phase);
  const bool closed = refit.closed.has_value();
  if (now == history_phase_ && closed == history_closed_) return;
  history_phase_ = now;
  history_closed_ = closed;
  if (refit.phase == RefitSummary::Phase::committed || refit.phase == RefitSummary::Phase::aborted)
    keep_history(admin::version_row(fleet()));
}

void Shell::keep_history(admin::VersionRow row) {
  history_.put(std::move(row));
  on_state([file = history_file(parts_), text = history_.text()] {
    if (auto saved = admin::save_history(FileOps::real(), file, text); !saved)
      spdlog::warn("history: {}", saved.error().text());
  });
}

void Shell::note(Note::Level level, std::string code, std::string text) {
  on_core([this, entry = Note{level, std::move(code), std::move(text)}] { perform(entry); });
}

void Shell::perform(const Note& action) {
  log_note(action);
}

// ------------------------------------------------------------------------------------------------ views, end

admin::FleetInput Shell::fleet() const {
  const Instant now = std::chrono::steady_clock::now();
  admin::FleetInput input = admin::fleet_input(*node_, parts_.plan, now, wall_clock());
  input.mesh = parts_.plan.mesh();
  input.started = started_;
  input.history = &history_;
  input.rates = &rates_;
  const auto image = parts_.store->image();
  if (image && image->layout().block_count() > 0)
    input.mean_block_bytes =
        static_cast<double>(image->layout().total_bytes()) / static_cast<double>(image->layout().block_count());
  if (producer_) {
    const codec::RefitControl& progress = producer_->progress();
    if (image) input.encode.dense_bytes = image->layout().total_bytes();
    input.encode.scanned_bytes = progress.done_bytes;
    input.encode.payload_bytes = progress.payload_bytes;
    if (progress.done_elements != 0)
      input.encode.changed_percent =
          100.0 * static_cast<double>(progress.changed_elements) / static_cast<double>(progress.done_elements);
  }
  return input;
}

void Shell::stop() {
  if (std::exchange(stopped_, true)) return;
  std::future<void> gone = links_gone_.get_future();
  on_core([this] {
    stopping_ = true;
    tick_timer_.cancel();
    image_timer_.cancel();
    if (listener_) listener_->stop();
    for (auto& [id, entry] : links_) {
      entry.link->send(encode_message(Closing{"STOPPING", "the daemon is stopping"}, parts_.store->options().mesh),
                       net::Lane::control);
      entry.link->close("the daemon is stopping");
    }
    if (links_.empty() && !std::exchange(links_gone_told_, true)) links_gone_.set_value();
  });
  (void)gone.wait_for(goodbye_within);
  budget_.stop();
  tasks_.stop();
  if (producer_) producer_->join();
  boost::asio::post(state_, [this] {
    engine_wait_.cancel();
    files_timer_.cancel();
    watch_timer_.cancel();
  });
  verifier_.join();
  apply_queue_->stop();
  log_writer_->stop();
  state_.join();
  flusher_.join();
  readers_.join();
  cpu_.join();
}

}  // namespace deltarelay::relay
