// Links: parents found and lost, children greeted and served, messages of one hop.
#include <fmt/format.h>

#include <algorithm>

#include "codec/payloads.hpp"
#include "relay/core/node.hpp"

namespace deltarelay::relay {
namespace {
/// A parent that hashes its image answers when it is done, and a large image takes longer than its children can wait.
constexpr Duration welcome_within = std::chrono::seconds(30);
}  // namespace

std::optional<LinkId> Node::parent_link() const {
  return parent_phase_ == ParentPhase::attached ? parent_link_ : std::nullopt;
}

void Node::close(LinkId link, std::string code, std::string text) {
  out_.push_back(SendMessage{link, Closing{code, text}});
  out_.push_back(CloseLink{link, std::move(code), std::move(text)});
}

// ------------------------------------------------------------------------------------------------ up and down

void Node::on(const LinkUp& event) {
  if (!event.to_parent) {
    if (children_.size() >= config_.children_max)
      return close(event.link, "CHILDREN_FULL",
                   fmt::format("{} has {} children, its limit", config_.name, children_.size()));
    children_.emplace(event.link, ChildSession(event.link, event.peer, config_.child_window_bytes));
    return;
  }
  if (parent_phase_ != ParentPhase::connecting)
    return close(event.link, "NOT_WANTED", "another parent was found first");
  parent_phase_ = ParentPhase::greeting;
  parent_link_ = event.link;
  parent_ = event.peer;
  ++attachments_;
  greeted_at_ = now_;
  Hello hello;
  hello.node = config_.name;
  hello.boot_id = config_.boot_id;
  hello.attach_sequence = first_of_boot(config_.boot_count) + attachments_;
  hello.rank = config_.rank;
  hello.epoch = epoch_;
  hello.committed = image_.version;
  hello.image = image_.image;
  hello.image_epoch = image_epoch();
  hello.resume = resume_point();
  out_.push_back(SendMessage{event.link, hello});
}

void Node::on(const LinkClosed& event) {
  if (is_parent(event.link)) {
    out_.push_back(Note{Note::Level::warn, "PARENT_DOWN",
                        fmt::format("link to parent {} ended: {} ({})", parent_, event.code, event.text)});
    parent_phase_ = ParentPhase::none;
    parent_link_.reset();
    asked_.reset();
    reattach_.failed(now_);
    sync_.parent_lost();
    return;
  }
  auto found = children_.find(event.link);
  if (found == children_.end()) return;
  const std::string name = found->second.name();
  children_.erase(found);
  const bool again =
      std::any_of(children_.begin(), children_.end(), [&](const auto& c) { return c.second.name() == name; });
  if (!again) reports_.lost(name, event.code + ": " + event.text);
}

void Node::on(const ConnectFailed& event) {
  if (parent_phase_ != ParentPhase::connecting) return;
  parent_phase_ = ParentPhase::none;
  if (reattach_.failures() % 10 == 0)
    out_.push_back(Note{Note::Level::warn, event.code,
                        fmt::format("parent {} cannot be reached: {}; tried again", event.peer, event.text)});
  reattach_.failed(now_);
}

void Node::on(const RecordSent& event) {
  if (auto found = children_.find(event.link); found != children_.end()) found->second.sent(event.bytes, log_, out_);
}

void Node::on(const Tick&) {
  if (now_ >= heartbeat_at_) {
    heartbeat_at_ = now_ + config_.heartbeat;
    if (parent_phase_ == ParentPhase::attached) out_.push_back(SendMessage{*parent_link_, Heartbeat{}});
    for (const auto& [link, child] : children_) out_.push_back(SendMessage{link, Heartbeat{}});
  }
  // Whoever says hello before it knows what it holds would be told to sync all of it.
  const bool knows_image = image_open_ || !image_error_code_.empty();
  if (!config_.is_root && knows_image && parent_phase_ == ParentPhase::none)
    if (const Candidate* candidate = reattach_.due(now_)) {
      parent_phase_ = ParentPhase::connecting;
      out_.push_back(ConnectTo{candidate->name, candidate->address});
    }
  if (parent_phase_ == ParentPhase::greeting && now_ - greeted_at_ > welcome_within) {
    reattach_.pass_over();
    close(*parent_link_, "NO_WELCOME", fmt::format("{} has not answered for long", parent_));
  }
  refit_.tick(current(), now_, out_);
  sync_.tick(now_, out_, parent_link());
  if (sync_.stalled(now_) && sync_.purpose() == BlockSync::Purpose::revert && reattach_.passed_over_all()) {
    // Nobody has our base any more. Whatever the parent holds instead, it has a manifest of.
    reattach_.settled();
    sync_.become(out_, parent_link());
  } else if (sync_.stalled(now_) && parent_phase_ == ParentPhase::attached) {
    // It is in the middle of the next refit, which may be waiting for us. The root at the latest still has the base.
    reattach_.pass_over();
    close(*parent_link_, "SYNC_STALLED", "none of the blocks that were asked for came for long");
  }
  if (!sync_.running())
    if (const std::vector<std::uint64_t> blocks = refit_.blocks_to_repair(); !blocks.empty())
      sync_.fetch(BlockSync::Purpose::repair, blocks, out_, parent_link());
  become_if_history_differs();
  end_orphans();
  conclude_verify();
}

// ------------------------------------------------------------------------------------------------ records from the
// parent

Epoch Node::history_epoch() const {
  const RefitEntry* newest = log_.find(log_.newest());
  return newest != nullptr ? std::max(image_epoch(), newest->epoch) : image_epoch();
}

void Node::ask_again(LogPosition from) {
  if (asked_ == from) return;  // one request is under way; a second would only double the answer
  asked_ = from;
  out_.push_back(SendMessage{*parent_link_, AskAgain{from}});
}

void Node::on(const FrameRejected& event) {
  out_.push_back(
      Note{Note::Level::warn, "FRAME_REJECTED",
           fmt::format("record from {} refused: {}", is_parent(event.link) ? parent_ : "a child", event.reason)});
  // The stream that carried a wrong record is not to be trusted for the next one; the cursor resumes on a new link.
  close(event.link, "FRAME_REJECTED", event.reason);
}

void Node::on(const FrameReceived& event) {
  if (!is_parent(event.link)) {
    if (children_.count(event.link) != 0) close(event.link, "PROTOCOL", "log records travel down only");
    return;
  }
  const codec::RecordHeader& header = event.record->header;
  const RefitEntry* refit = log_.find(header.version);
  // A root that lost its ledger may use numbers again, and is then of a higher epoch: its history is the one that counts.
  const bool anew = codec::raw(header.sequence) == 0 && header.epoch > (refit ? refit->begun : history_epoch());
  const bool passed = refit != nullptr || header.version <= image_.version || header.version < log_.newest();
  if (anew && passed) {
    if (!sync_.running() || sync_.purpose() != BlockSync::Purpose::become) sync_.become(out_, parent_link());
    return;
  }
  if (refit == nullptr) {
    if (passed) return;  // known history sent again
    if (codec::raw(header.sequence) != 0) return ask_again(LogPosition{header.version, Sequence{}});
    // Epochs never fall along the versions. (Not compared with the highest one known: what a root of an earlier epoch
    // committed stays history when it restarts; a parent that has not heard of the newest is refused when it welcomes
    // us.)
    if (header.epoch < history_epoch())
      return close(event.link, "FENCED",
                   fmt::format("refit v{} comes from epoch {}, and the version before it from epoch {}",
                               codec::raw(header.version), codec::raw(header.epoch), codec::raw(history_epoch())));
    auto begin = codec::BeginPayload::decode(event.record->payload());
    if (header.type != codec::RecordType::begin || !begin)
      return close(event.link, "PROTOCOL", "a refit must open with BEGIN");
  } else {
    if (header.sequence < refit->next_sequence()) return;  // sent twice; progress is a set, not a sum
    if (header.sequence > refit->next_sequence()) return ask_again(LogPosition{header.version, refit->next_sequence()});
    if (header.epoch < refit->epoch || refit->decision)
      return close(event.link, "PROTOCOL", fmt::format("a record after the end of v{}", codec::raw(header.version)));
  }
  asked_.reset();
  if (!append(event.record)) return close(event.link, "PROTOCOL", "a record that cannot be decoded");
  become_if_history_differs();
}

// ------------------------------------------------------------------------------------------------ messages

void Node::on(const MessageArrived& event) {
  std::visit([&](const auto& m) { message(event.link, m); }, event.message);
}

void Node::message(LinkId link, const Hello& hello) {
  auto found = children_.find(link);
  if (found == children_.end() || found->second.phase() != ChildSession::Phase::greeting) return;
  ChildSession& child = found->second;
  if (hello.node != child.name())
    return close(link, "IDENTITY", fmt::format("says it is {}, its certificate says {}", hello.node, child.name()));
  if (hello.rank <= config_.rank)
    return close(
        link, "RANK",
        fmt::format("{} has rank {}, not below {} with rank {}", hello.node, hello.rank, config_.name, config_.rank));
  for (const auto& [other, session] : children_)
    if (other != link && session.name() == child.name())
      close(other, "REPLACED", fmt::format("{} connected again", child.name()));
  const bool becoming = sync_.running() && sync_.purpose() == BlockSync::Purpose::become;
  if (!image_open_ && !becoming) {
    // Who does not know what it holds would send everybody into a block sync, perhaps back from a newer version.
    child.unanswered = hello;
    if (!image_error_code_.empty())
      close(link, "IMAGE_NOT_OPEN", fmt::format("{} cannot open its image: {}", config_.name, image_error_text_));
    return;
  }
  Welcome welcome;
  welcome.node = config_.name;
  welcome.boot_id = config_.boot_id;
  welcome.rank = config_.rank;
  welcome.epoch = epoch_;
  welcome.committed = image_.version;
  welcome.image = image_.image;
  const bool same = hello.committed == image_.version && hello.image == image_.image;
  const RefitEntry* bridge = log_.from_base(hello.committed);
  const bool bridged = bridge != nullptr && bridge->base_image == hello.image;
  const bool known = codec::raw(hello.committed) != 0 && codec::raw(image_.version) != 0;
  // A child ahead of us is not sent back: it waits here until our own log has caught up. Epochs never fall along the
  // versions of one history.
  const bool ahead = known && hello.committed > image_.version && hello.image_epoch >= image_epoch();
  const RefitEntry* in_flight = log_.find(hello.resume.next.version);
  const bool same_refit = in_flight == nullptr || in_flight->begun == hello.resume.begun;
  welcome.mode = known && same_refit && (same || bridged || ahead) ? Mode::stream : Mode::sync;
  root_.note_used(std::max(hello.committed, hello.resume.next.version));
  out_.push_back(SendMessage{link, welcome});
  if (welcome.mode == Mode::stream && ahead && !bridged) child.waits_ahead = hello.image_epoch;
  if (welcome.mode == Mode::stream)
    child.stream_from(hello.committed, hello.resume, log_, out_);
  else
    child.sync();
  ask_to_verify(link);
}

void Node::answer_early_hellos() {
  for (auto& [link, child] : children_)
    if (const auto hello = std::exchange(child.unanswered, std::nullopt)) message(link, *hello);
}

void Node::message(LinkId link, const Welcome& welcome) {
  if (!is_parent(link) || parent_phase_ != ParentPhase::greeting) return;
  if (welcome.epoch < epoch_)
    return close(link, "FENCED",
                 fmt::format("{} is at epoch {}, and epoch {} is known here", welcome.node, codec::raw(welcome.epoch),
                             codec::raw(epoch_)));
  if (welcome.rank >= config_.rank) return close(link, "RANK", fmt::format("{} is not above this node", welcome.node));
  parent_phase_ = ParentPhase::attached;
  epoch_ = welcome.epoch;
  reattach_.attached();
  reports_.mark_all();
  verify_.mark_all();
  if (welcome.mode == Mode::sync) {
    if (sync_.running() && sync_.purpose() == BlockSync::Purpose::become)
      sync_.parent_found(link, out_);
    else if (image_open_)
      sync_.become(out_, link);
  } else {
    if (sync_.running() && sync_.purpose() == BlockSync::Purpose::become && !sync_.gave_up_version()) {
      sync_.finish();
      if (refit_.phase() == RefitNode::Phase::undoing) out_.push_back(CompareWithBase{refit_.version()});
    }
    sync_.parent_found(link, out_);
  }
  report(true);
}

void Node::stream_from_parent() {
  if (parent_phase_ != ParentPhase::attached) return;
  out_.push_back(SendMessage{*parent_link_, Resume{image_.version, image_.image, resume_point()}});
}

void Node::message(LinkId, const Heartbeat&) {}

void Node::message(LinkId link, const Report& report_message) {
  if (children_.count(link) == 0) return;
  for (const NodeRecord& record : report_message.records) root_.note_used(std::max(record.committed, record.receiving));
  if (reports_.merge(report_message.records)) report(true);
}

void Node::message(LinkId link, const AskAgain& ask) {
  if (auto found = children_.find(link); found != children_.end()) found->second.rewind(ask.from, log_, out_);
}

void Node::message(LinkId link, const Resume& resume) {
  auto found = children_.find(link);
  if (found == children_.end() || found->second.phase() != ChildSession::Phase::syncing) return;
  const bool same = resume.committed == image_.version && resume.image == image_.image;
  const RefitEntry* bridge = log_.from_base(resume.committed);
  const bool bridged = bridge != nullptr && bridge->base_image == resume.image;
  if (!same && !bridged && resume.committed <= image_.version)
    return close(link, "SYNC_AGAIN", "committed moved on during the block sync");
  found->second.stream_from(resume.committed, resume.from, log_, out_);
}

void Node::message(LinkId link, const Closing& closing) {
  out_.push_back(Note{Note::Level::info, closing.code,
                      fmt::format("{} closes the link: {}", is_parent(link) ? parent_ : "a child", closing.text)});
}

void Node::message(LinkId link, const SyncManifestRequest&) {
  auto found = children_.find(link);
  if (found == children_.end()) return;
  found->second.manifest_wanted = true;
  send_manifests();
}

void Node::message(LinkId link, const SyncManifest& manifest) {
  if (!is_parent(link)) return;
  const bool had_begun = sync_.gave_up_version();
  sync_.on(manifest, out_, parent_link());
  if (had_begun || !sync_.gave_up_version()) return;
  leave_history();
}

void Node::message(LinkId link, const SyncDigests& digests) {
  if (is_parent(link)) sync_.on(digests, out_);
}

void Node::message(LinkId link, const SyncBlocksRequest& request) {
  auto found = children_.find(link);
  if (found == children_.end()) return;
  found->second.want_blocks(request.ordinals);
  serve_blocks();
}

void Node::message(LinkId link, const SyncBlocks& blocks) {
  if (is_parent(link)) sync_.on(blocks, out_);
}

void Node::message(LinkId link, const SyncUnavailable& unavailable) {
  if (is_parent(link)) sync_.on(unavailable, now_);
}

void Node::message(LinkId link, const SyncFile& file) {
  if (is_parent(link)) sync_.on(file, out_);
}

}  // namespace deltarelay::relay
