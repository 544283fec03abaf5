#include "tests/sim/fleet.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "codec/bytes.hpp"
#include "codec/limits.hpp"
#include "codec/payloads.hpp"

namespace deltarelay::sim {
using namespace std::chrono_literals;
using codec::raw;
using codec::RecordPtr;
using codec::RecordType;
using codec::Sequence;
using relay::Duration;
using relay::LinkId;
using relay::NodeState;

namespace {
codec::Digest digest_of_block(std::uint64_t value) { return codec::digest_of(std::as_bytes(std::span(&value, 1))); }

struct Piece {
  std::uint64_t block = 0, value = 0;
};
std::vector<std::byte> encode(const std::vector<Piece>& pieces) {
  std::vector<std::byte> out;
  codec::ByteWriter writer(out);
  for (const Piece& piece : pieces) {
    writer.u64(piece.block);
    writer.u64(piece.value);
  }
  return out;
}
std::vector<Piece> decode(codec::Bytes in) {
  std::vector<Piece> out;
  codec::ByteReader reader(in);
  while (reader.remaining() != 0) {
    Piece piece;
    piece.block = reader.u64();
    piece.value = reader.u64();
    out.push_back(piece);
  }
  return out;
}
}  // namespace

/// What survives a crash (image, ledger, log) and what does not (core, links, sync tables).
struct Fleet::Host {
  HostSpec spec;
  Blocks image;
  bool has_image = false;
  relay::ImageState committed;
  std::map<Version, std::vector<RecordPtr>> log;
  std::uint64_t boots = 0;

  std::unique_ptr<relay::Node> core;
  std::uint64_t generation = 0;  // actions of a dead process are not performed
  std::map<LinkId, LinkPtr> links;
  RecordPtr sync_end, sync_layout;
  std::vector<codec::Digest> sync_table;
  std::optional<Version> applying;
};

Fleet::Fleet(std::vector<HostSpec> hosts, std::size_t block_count, std::uint64_t seed, Faults faults)
    : specs_(std::move(hosts)), random_(seed), faults_(faults) {
  Blocks first(block_count);
  for (std::uint64_t& block : first) block = random_();
  truth_[Version{1}] = first;
  codec::EndPayload end;
  end.image = image_digest(first);
  const RecordPtr end_record = seal(Version{1}, RecordType::end, 0, end.encode());
  const RecordPtr layout_record = seal(Version{1}, RecordType::layout, 0, {});
  for (const HostSpec& spec : specs_) {
    auto host = std::make_unique<Host>();
    host->spec = spec;
    if (!spec.empty) {
      host->has_image = true;
      host->image = first;
      host->committed = relay::ImageState{Version{1}, end.image, end_record, layout_record};
    }
    if (spec.parent.empty()) root_ = spec.name;
    hosts_.emplace(spec.name, std::move(host));
  }
  for (const HostSpec& spec : specs_) {
    start(*hosts_.at(spec.name));
    tick(spec.name);
  }
}
Fleet::~Fleet() = default;

void Fleet::at(Instant when, std::function<void()> what) {
  queue_.push(Scheduled{when, order_++, std::make_shared<std::function<void()>>(std::move(what))});
}

codec::Digest Fleet::image_digest(const Blocks& blocks) const {
  std::vector<codec::Digest> table;
  for (std::uint64_t block : blocks) table.push_back(digest_of_block(block));
  return codec::digest_of(std::span<const codec::Digest>(table));
}

RecordPtr Fleet::seal(Version version, RecordType type, std::uint64_t sequence, std::vector<std::byte> payload) const {
  codec::RecordHeader header;
  header.type = type;
  header.version = version;
  header.sequence = Sequence{sequence};
  header.epoch = codec::Epoch{1};
  return codec::seal_record(header, payload, nullptr);
}

void Fleet::start(Host& host) {
  relay::NodeConfig config;
  config.name = host.spec.name;
  config.is_root = host.spec.parent.empty();
  config.rank = host.spec.rank;
  config.boot_count = ++host.boots;
  config.boot_id = random_();
  config.seed = random_();
  config.epoch = codec::Epoch{1};
  config.child_window_bytes = 4096;
  config.apply_window_bytes = 4096;
  if (config.is_root)
    for (const HostSpec& spec : specs_) config.expected.push_back(spec.name);
  else
    config.candidates = {{host.spec.parent, host.spec.parent}};
  host.core = std::make_unique<relay::Node>(config);
  ++host.generation;
  host.sync_end = host.sync_layout = nullptr;
  host.sync_table.clear();
  for (const auto& [version, records] : host.log)
    for (const RecordPtr& record : records) host.core->restore(record);
  later(host, 1ms, relay::ImageOpened{host.committed});
}

void Fleet::tick(const std::string& name) {
  Host& host = *hosts_.at(name);
  if (!host.spec.parent.empty() && chance(faults_.crash)) crash(name);
  feed(host, relay::Tick{});
  at(now_ + 50ms, [this, name] { tick(name); });
}

void Fleet::later(Host& host, Duration delay_, relay::Event event) {
  const std::uint64_t generation = host.generation;
  at(now_ + delay_, [this, &host, generation, event = std::move(event)] {
    if (host.generation == generation) feed(host, event);
  });
}

void Fleet::feed(Host& host, const relay::Event& event) {
  const std::uint64_t generation = host.generation;
  for (const relay::Action& action : host.core->handle(event, now_)) {
    if (host.generation != generation) return;
    perform(host, action);
  }
  check(host);
}

bool Fleet::run_until(const std::function<bool()>& done, Duration limit) {
  const Instant end = now_ + limit;
  while (!done()) {
    if (queue_.empty() || queue_.top().when > end || !violation_.empty()) return false;
    const Scheduled next = queue_.top();
    queue_.pop();
    now_ = next.when;
    (*next.what)();
  }
  return violation_.empty();
}

// ------------------------------------------------------------------------------------------------ links

void Fleet::connect(Host& child, const std::string& parent) {
  const std::uint64_t generation = child.generation;
  at(now_ + 2ms, [this, &child, parent, generation] {
    if (child.generation != generation) return;
    Host& host = *hosts_.at(parent);
    auto link = std::make_shared<Link>();
    link->parent = parent;
    link->child = child.spec.name;
    link->at_parent = LinkId{++links_made_};
    link->at_child = LinkId{++links_made_};
    host.links[link->at_parent] = link;
    child.links[link->at_child] = link;
    feed(host, relay::LinkUp{link->at_parent, child.spec.name, false});
    if (link->open && child.generation == generation) feed(child, relay::LinkUp{link->at_child, parent, true});
  });
}

void Fleet::cut(const LinkPtr& link, const std::string& why) {
  if (!std::exchange(link->open, false)) return;
  for (const auto& [name, id] : {std::pair(link->parent, link->at_parent), std::pair(link->child, link->at_child)}) {
    Host& host = *hosts_.at(name);
    if (host.links.erase(id) != 0) later(host, 1ms, relay::LinkClosed{id, "CUT", why});
  }
}

void Fleet::transmit(Host& from, LinkId id, std::size_t bytes, bool data, std::function<void(Host&, LinkId)> deliver) {
  auto found = from.links.find(id);
  if (found == from.links.end()) return;
  const LinkPtr link = found->second;
  if (chance(faults_.cut_link)) return cut(link, "fault");
  const bool down = link->at_parent == id;
  const std::string to = down ? link->child : link->parent;
  const LinkId to_id = down ? link->at_child : link->at_parent;
  auto slow = latency_.find({link->parent, link->child});
  const Duration latency = slow == latency_.end() ? Duration(1ms) : slow->second;
  Instant& free = down ? link->down_free : link->up_free;
  free = std::max(free, now_ + latency);  // in order, as TCP is
  if (data) later(from, latency / 2, relay::RecordSent{id, bytes});
  at(free, [this, link, to, to_id, deliver = std::move(deliver)] {
    if (!link->open) return;
    Host& host = *hosts_.at(to);
    if (host.links.count(to_id) != 0) deliver(host, to_id);
  });
}

void Fleet::crash(const std::string& name) {
  Host& host = *hosts_.at(name);
  ++host.generation;
  const auto links = host.links;
  for (const auto& [id, link] : links) cut(link, "peer died");
  host.links.clear();
  start(host);
}

void Fleet::damage(const std::string& name, std::size_t block) { hosts_.at(name)->image[block] ^= 0x5555; }
void Fleet::delay(const std::string& a, const std::string& b, Duration latency) { latency_[{a, b}] = latency; }

// ------------------------------------------------------------------------------------------------ root

Version Fleet::publish(std::size_t changed) {
  const Version base = truth_.rbegin()->first;
  const Version version = codec::next(std::max(base, last_published_));
  last_published_ = version;
  const relay::Node& root = *hosts_.at(root_)->core;
  const bool ready = run_until(
      [&] { return root.image().version == base && root.refit_node().phase() == relay::RefitNode::Phase::idle; }, 60s);
  if (!ready && violation_.empty()) violation_ = "the root is not ready to publish";
  Blocks blocks = truth_.at(base);
  std::set<std::size_t> places;
  while (places.size() < changed) places.insert(random_() % blocks.size());
  for (std::size_t place : places) blocks[place] = random_();
  truth_[version] = blocks;
  changes_[version] = {places.begin(), places.end()};
  feed(*hosts_.at(root_), relay::PublishRequested{1, "export", version, "all"});
  return version;
}

void Fleet::abort(Version version) { feed(*hosts_.at(root_), relay::AbortRequested{2, version, "operator"}); }

void Fleet::produce(Version version, std::size_t next_block) {
  Host& host = *hosts_.at(root_);
  const std::vector<std::size_t>& changed = changes_.at(version);
  if (encode_stopped_) return feed(host, relay::EncodeEnded{version, "", ""});
  if (next_block == changed.size()) return produce_end(version);
  const std::size_t block = changed[next_block];
  const RecordPtr frame = seal(version, RecordType::frame, host.log[version].size(), encode({{block, truth_.at(version)[block]}}));
  feed(host, relay::RecordProduced{frame});
  at(now_ + 1ms, [this, version, next_block] { produce(version, next_block + 1); });
}

void Fleet::produce_end(Version version) {
  Host& host = *hosts_.at(root_);
  codec::EndPayload end;
  end.frame_count = changes_.at(version).size();
  end.image = image_digest(truth_.at(version));
  end_produced_[version] = now_;
  feed(host, relay::RecordProduced{seal(version, RecordType::end, host.log[version].size(), end.encode())});
  feed(host, relay::EncodeEnded{version, "", ""});
}

// ------------------------------------------------------------------------------------------------ the shell's part

void Fleet::apply(Host& host, relay::LogPosition position) {
  const RecordPtr record = host.log.at(position.version).at(raw(position.sequence));
  relay::FrameApplied event{position.version, position.sequence, 0, 0, {}, "", ""};
  const Blocks& base = truth_.at(host.committed.version);
  for (const Piece& piece : decode(record->payload())) {
    std::uint64_t& block = host.image[piece.block];
    if (block == piece.value) {
      ++event.already;
    } else if (block == base[piece.block]) {
      block = piece.value;
      ++event.applied;
      first_applied_.emplace(std::pair(host.spec.name, position.version), now_);
    } else {
      event.needs_repair.push_back(piece.block);
    }
  }
  later(host, 1ms, event);
}

bool Fleet::is_wanted(const Host& host, std::uint64_t block, std::uint64_t value, bool in_flight) const {
  if (!host.sync_table.empty()) return host.sync_table[block] == digest_of_block(value);
  if (truth_.at(host.committed.version)[block] == value) return true;
  const relay::RefitNode& refit = host.core->refit_node();
  auto target = truth_.find(refit.version());
  return in_flight && refit.phase() != relay::RefitNode::Phase::undoing && target != truth_.end() && target->second[block] == value;
}

void Fleet::perform(Host& host, const relay::Action& action) {
  const auto commit = [&](const RecordPtr& end_record, Duration delay_) {
    auto end = codec::EndPayload::decode(end_record->payload());
    assert(end);
    RecordPtr layout = host.sync_layout ? host.sync_layout : host.committed.layout_record;
    host.committed = relay::ImageState{end_record->header.version, end->image, end_record, layout};
    later(host, delay_, relay::CommitSaved{host.committed, "", ""});
  };
  if (const auto* a = std::get_if<relay::ConnectTo>(&action)) return connect(host, a->peer);
  if (const auto* a = std::get_if<relay::CloseLink>(&action)) {
    if (auto found = host.links.find(a->link); found != host.links.end()) cut(LinkPtr(found->second), a->code);
    return;
  }
  if (const auto* a = std::get_if<relay::SendMessage>(&action)) {
    return transmit(host, a->link, 0, false, [this, message = a->message](Host& to, LinkId id) {
      feed(to, relay::MessageArrived{id, message});
    });
  }
  if (const auto* a = std::get_if<relay::SendRecord>(&action)) {
    const RecordPtr record = host.log.at(a->position.version).at(raw(a->position.sequence));
    return transmit(host, a->link, record->bytes.size(), true,
                    [this, record](Host& to, LinkId id) { feed(to, relay::FrameReceived{id, record}); });
  }
  if (const auto* a = std::get_if<relay::AppendRecord>(&action)) {
    auto& records = host.log[a->record->header.version];
    if (raw(a->record->header.sequence) != records.size()) violation_ = host.spec.name + ": log out of order";
    records.push_back(a->record);
    return;
  }
  if (const auto* a = std::get_if<relay::DropRefit>(&action)) {
    host.log.erase(a->version);
    return;
  }
  if (const auto* a = std::get_if<relay::ApplyRecord>(&action)) return apply(host, a->position);
  if (const auto* a = std::get_if<relay::SyncImage>(&action))
    return later(host, 2ms, relay::ImageSynced{a->version, image_digest(host.image), "", ""});
  if (const auto* a = std::get_if<relay::SaveCommit>(&action)) return commit(a->end_record, 2ms);
  if (const auto* a = std::get_if<relay::CompareWithBase>(&action)) {
    relay::BaseCompared event{a->version, {}, "", ""};
    const Blocks& base = truth_.at(host.committed.version);
    for (std::size_t i = 0; i < base.size(); ++i)
      if (host.image[i] != base[i]) event.differing.push_back(i);
    return later(host, 3ms, event);
  }
  if (const auto* a = std::get_if<relay::PrepareSync>(&action)) {
    host.sync_end = a->end_record;
    host.sync_layout = a->layout_record;
    host.sync_table.clear();
    if (!std::exchange(host.has_image, true)) host.image.assign(truth_.begin()->second.size(), 0);
    host.committed = relay::ImageState{};  // the image is not a version any more
    return later(host, 3ms, relay::SyncPrepared{a->end_record->header.version});
  }
  if (const auto* a = std::get_if<relay::StoreSyncDigests>(&action)) {
    host.sync_table.insert(host.sync_table.end(), a->digests.begin(), a->digests.end());
    relay::SyncCompared event{host.sync_end->header.version, {}};
    for (std::size_t i = 0; i < host.sync_table.size(); ++i)
      if (digest_of_block(host.image[i]) != host.sync_table[i]) event.missing.push_back(i);
    return later(host, 4ms, event);
  }
  if (const auto* a = std::get_if<relay::ApplySyncBlocks>(&action)) {
    relay::SyncBlocksApplied event;
    for (const Piece& piece : decode(a->frame_payload)) {
      const bool right = is_wanted(host, piece.block, piece.value, a->accept_in_flight);
      if (right) host.image[piece.block] = piece.value;
      (right ? event.verified : event.refused).push_back(piece.block);
    }
    return later(host, 1ms, event);
  }
  if (std::get_if<relay::SaveSynced>(&action) != nullptr) {
    commit(host.sync_end, 2ms);
    host.sync_table.clear();
    return;
  }
  if (const auto* a = std::get_if<relay::SendSyncDigests>(&action)) {
    relay::SyncDigests message;
    message.digests = host.sync_table;
    if (message.digests.empty())
      for (std::uint64_t block : truth_.at(host.committed.version)) message.digests.push_back(digest_of_block(block));
    return perform(host, relay::SendMessage{a->link, message});
  }
  if (const auto* a = std::get_if<relay::SendSyncBlocks>(&action)) {
    relay::SyncBlocksSent event{a->link, {}};
    std::vector<Piece> pieces;
    for (std::uint64_t block : a->ordinals) {
      if (is_wanted(host, block, host.image[block], true))
        pieces.push_back({block, host.image[block]});
      else
        event.unavailable.push_back(block);
    }
    if (!pieces.empty()) perform(host, relay::SendMessage{a->link, relay::SyncBlocks{encode(pieces)}});
    return later(host, 1ms, event);
  }
  if (const auto* a = std::get_if<relay::SaveManifest>(&action)) return later(host, 1ms, relay::ManifestSaved{a->version, "", ""});
  if (const auto* a = std::get_if<relay::StartEncode>(&action)) {
    encode_stopped_ = false;
    codec::BeginPayload begin;
    begin.base = a->base;
    begin.block_bytes = codec::block_bytes_default;
    begin.base_image = image_digest(truth_.at(a->base));
    const RecordPtr record = seal(a->version, RecordType::begin, 0, begin.encode());
    at(now_ + 1ms, [this, version = a->version, record] {
      feed(*hosts_.at(root_), relay::RecordProduced{record});
      produce(version, 0);
    });
    return;
  }
  if (std::get_if<relay::StopEncode>(&action) != nullptr) {
    encode_stopped_ = true;
    return;
  }
  if (const auto* a = std::get_if<relay::SaveDecision>(&action)) {
    if (!a->commit) truth_.erase(a->version);
    const RecordPtr record = seal(a->version, a->commit ? RecordType::commit : RecordType::abort, raw(a->sequence), {});
    return later(host, 2ms, relay::DecisionSaved{record, "", ""});
  }
}

// ------------------------------------------------------------------------------------------------ rules

void Fleet::check(const Host& host) {
  if (!violation_.empty()) return;
  const relay::NodeRecord record = host.core->records().at(host.spec.name);
  if (record.frames_total != 0 && (record.frames_applied > record.frames_total || record.frames_received > record.frames_total))
    violation_ = host.spec.name + ": progress past 100 %";
  if (record.state != NodeState::idle && record.state != NodeState::prepared) return;
  if (raw(record.committed) == 0) return;
  // The root keeps its base until the decision, so its PREPARED speaks of its log and its image is still the base.
  const bool holds_new = record.state == NodeState::prepared && !host.spec.parent.empty();
  const Version version = holds_new ? record.receiving : record.committed;
  auto truth = truth_.find(version);
  if (truth == truth_.end()) return;  // aborted, and the news is still on its way
  if (host.image != truth->second)
    violation_ = host.spec.name + " says it holds v" + std::to_string(raw(version)) + " and does not";
}

const relay::Node& Fleet::node(const std::string& host) const { return *hosts_.at(host)->core; }

bool Fleet::holds(const std::string& host, Version version) const {
  const Host& h = *hosts_.at(host);
  return h.committed.version == version && h.core->image().version == version && h.image == truth_.at(version);
}

bool Fleet::all_at(Version version) const {
  return truth_.count(version) != 0 &&
         std::all_of(specs_.begin(), specs_.end(), [&](const HostSpec& spec) { return holds(spec.name, version); });
}

std::optional<Instant> Fleet::first_applied(const std::string& host, Version version) const {
  auto found = first_applied_.find({host, version});
  return found == first_applied_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Instant> Fleet::end_produced(Version version) const {
  auto found = end_produced_.find(version);
  return found == end_produced_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace deltarelay::sim
