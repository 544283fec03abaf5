// The fleet's clock, links and crashes, and the rules that are checked after every event.
#include "tests/sim/fleet.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "codec/bytes.hpp"
#include "codec/limits.hpp"
#include "codec/payloads.hpp"
#include "tests/sim/fleet_host.hpp"

namespace deltarelay::sim {
using namespace std::chrono_literals;
using codec::raw;
using codec::RecordPtr;
using codec::RecordType;
using codec::Sequence;
using relay::Duration;
using relay::LinkId;
using relay::NodeState;

Fleet::Fleet(std::vector<HostSpec> hosts, std::size_t block_count, std::uint64_t seed, Faults faults)
    : specs_(std::move(hosts)), random_(seed), faults_(faults) {
  Blocks first(block_count);
  for (std::uint64_t& block : first) block = random_();
  Host sealer;
  sealer.image = first;
  set_first_version(sealer);
  for (const HostSpec& spec : specs_) {
    auto host = std::make_unique<Host>();
    host->spec = spec;
    if (!spec.empty) {
      host->has_image = true;
      host->image = first;
      host->committed = sealer.committed;
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

codec::Digest Fleet::remember(const Blocks& blocks) {
  const codec::Digest digest = digest_of_image(blocks);
  contents_.emplace(digest, blocks);
  return digest;
}

const Blocks& Fleet::committed_content(const Host& host) const {
  return contents_.at(host.committed.image);
}

void Fleet::set_first_version(Host& host) {
  codec::EndPayload end;
  end.image = remember(host.image);
  host.committed = relay::ImageState{Version{1}, end.image, seal(host, Version{1}, RecordType::end, 0, end.encode()),
                                     seal(host, Version{1}, RecordType::layout, 0, {})};
  host.highest_used = Version{1};
  published_[Version{1}] = end.image;
}

RecordPtr Fleet::seal(const Host& root, Version version, RecordType type, std::uint64_t sequence,
                      std::vector<std::byte> payload) const {
  codec::RecordHeader header;
  header.type = type;
  header.version = version;
  header.sequence = Sequence{sequence};
  header.epoch = root.epoch;
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
  if (config.is_root) host.epoch = codec::next(host.epoch);
  config.epoch = host.epoch;
  config.highest_used = host.highest_used;
  config.child_window_bytes = 4096;
  config.apply_window_bytes = 4096;
  if (config.is_root)
    for (const HostSpec& spec : specs_) config.expected.push_back(spec.name);
  else
    config.candidates = {{host.spec.parent, host.spec.parent}, {root_, root_}};
  host.core = std::make_unique<relay::Node>(config);
  host.dead = false;
  ++host.generation;
  host.sync_end = host.sync_layout = nullptr;
  host.sync_table.clear();
  for (const auto& [version, records] : host.log)
    for (const RecordPtr& record : records) host.core->restore(record);
  if (host.pending) host.core->restore_pending(*host.pending);
  // A restarted host hashes its image first, and its parent is there long before it is done.
  later(host, host.boots == 1 ? Duration(1ms) : Duration(400ms), relay::ImageOpened{host.committed});
}

void Fleet::tick(const std::string& name) {
  Host& host = *hosts_.at(name);
  if (chance(host.spec.parent.empty() ? faults_.crash_root : faults_.crash)) crash(name);
  if (!host.dead) feed(host, relay::Tick{});
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
    if (host.dead) return feed(child, relay::ConnectFailed{parent, "REFUSED", "nobody listens"});
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
  lose(name);
  Host& host = *hosts_.at(name);
  if (host.spec.parent.empty()) cut_log(host);
  start(host);
}

/// What was sent, and not yet written when the process died.
void Fleet::cut_log(Host& root) {
  if (root.log.empty()) return;
  auto& [version, records] = *root.log.rbegin();
  const std::size_t kept = root.synced[version];
  if (records.size() > kept) records.resize(kept + random_() % (records.size() - kept + 1));
  if (records.empty()) root.log.erase(version);
}

void Fleet::wipe_root() {
  Host& root = *hosts_.at(root_);
  lose(root_);
  root.log.clear();
  root.synced.clear();
  root.pending.reset();
  root.boots += 1000;
  root.epoch = codec::Epoch{codec::raw(root.epoch) + 1000};  // of the clock, by which every life begins above the last
  set_first_version(root);
  start(root);
}

void Fleet::lose(const std::string& name) {
  Host& host = *hosts_.at(name);
  ++host.generation;
  host.dead = true;
  const auto links = host.links;
  for (const auto& [id, link] : links) cut(link, "peer died");
  host.links.clear();
}

void Fleet::damage(const std::string& name, std::size_t block) {
  hosts_.at(name)->image[block] ^= 0x5555;
}
void Fleet::damage_at_rest(const std::string& name, std::size_t block) {
  damage(name, block);
  hosts_.at(name)->damaged_at_rest = true;
}
void Fleet::delay(const std::string& a, const std::string& b, Duration latency) {
  latency_[{a, b}] = latency;
}

// ------------------------------------------------------------------------------------------------ rules

void Fleet::check(const Host& host) {
  if (!violation_.empty()) return;
  const relay::NodeRecord record = host.core->records().at(host.spec.name);
  if (record.frames_total != 0 &&
      (record.frames_applied > record.frames_total || record.frames_received > record.frames_total))
    violation_ = host.spec.name + ": progress past 100 %";
  if (record.state != NodeState::idle && record.state != NodeState::prepared) return;
  if (host.damaged_at_rest) return;
  // The root keeps its base until the decision, so its PREPARED speaks of its log and its image is still the base.
  const bool holds_new = record.state == NodeState::prepared && !host.spec.parent.empty();
  const Version version = holds_new ? record.receiving : record.committed;
  if (raw(version) == 0) return;
  auto content = contents_.find(holds_new ? record.target : record.image);
  if (content == contents_.end() || host.image != content->second)
    violation_ = host.spec.name + " says it holds v" + std::to_string(raw(version)) + " and does not";
}

const relay::Node& Fleet::node(const std::string& host) const {
  return *hosts_.at(host)->core;
}

bool Fleet::holds(const std::string& host, Version version) const {
  const Host& h = *hosts_.at(host);
  const codec::Digest& digest = published_.at(version);
  return h.committed.version == version && h.core->image().version == version && h.core->image().image == digest &&
         h.image == contents_.at(digest);
}

bool Fleet::all_at(Version version) const {
  return published_.count(version) != 0 &&
         std::all_of(specs_.begin(), specs_.end(), [&](const HostSpec& spec) { return holds(spec.name, version); });
}

std::optional<Instant> Fleet::first_applied(const std::string& host, Version version) const {
  auto found = first_applied_.find({host, version});
  return found == first_applied_.end() ? std::nullopt : std::optional(found->second);
}

std::string Fleet::describe() const {
  std::string out;
  for (const auto& [name, host] : hosts_) {
    const relay::Node& core = *host->core;
    const relay::NodeRecord record = core.records().at(name);
    out += name + ": " + relay::state_name(record.state) + " v" + std::to_string(raw(record.committed)) + ", receiving v" +
           std::to_string(raw(record.receiving)) + " " + std::to_string(record.frames_applied) + "/" +
           std::to_string(record.frames_received) + "/" + std::to_string(record.frames_total) + ", log to v" +
           std::to_string(raw(core.log().newest())) + ", sync phase " + std::to_string(static_cast<int>(core.sync().phase())) +
           " lacks " + std::to_string(core.sync().total() - core.sync().done()) + ", parent " + record.parent + " " +
           record.reason_code + " " + record.reason_text + "\n";
  }
  return out;
}

std::optional<Instant> Fleet::end_produced(Version version) const {
  auto found = end_produced_.find(version);
  return found == end_produced_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace deltarelay::sim
