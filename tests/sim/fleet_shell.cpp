// What a shell does for a core, in the simulator: the root encodes, hosts apply, actions are performed.
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

// ------------------------------------------------------------------------------------------------ root

Version Fleet::publish(std::size_t changed) {
  Host& root = *hosts_.at(root_);
  const auto can = [&] {
    using Phase = relay::RefitSummary::Phase;
    const Phase phase = root.core->refit().phase;
    const bool ended = phase == Phase::none || phase == Phase::committed || phase == Phase::aborted;
    return ended && raw(root.core->image().version) != 0 &&
           root.core->refit_node().phase() == relay::RefitNode::Phase::idle;
  };
  const bool ready = run_until(can, 60s);
  if (!ready && violation_.empty()) violation_ = "the root is not ready to publish";
  Blocks blocks = committed_content(root);
  std::set<std::size_t> places;
  while (places.size() < changed) places.insert(random_() % blocks.size());
  for (std::size_t place : places) blocks[place] = random_();
  changes_ = {places.begin(), places.end()};
  const codec::Digest target = remember(blocks);
  feed(root, relay::PublishRequested{1, "export", std::nullopt, "all"});
  const Version version = root.core->refit().version;
  published_[version] = target;
  targets_[{version, root.epoch}] = target;
  return version;
}

void Fleet::abort(Version version) {
  feed(*hosts_.at(root_), relay::AbortRequested{2, version, "operator"});
}

void Fleet::verify(const std::string& name) {
  feed(*hosts_.at(name), relay::VerifyRequested{3, true});
}

void Fleet::produce_begin(Host& host, Version version, Version base) {
  codec::BeginPayload begin;
  begin.base = base;
  begin.block_bytes = codec::block_bytes_default;
  begin.base_image = host.committed.image;
  feed(host, relay::RecordProduced{seal(host, version, RecordType::begin, 0, begin.encode())});
}

void Fleet::produce(Host& host, std::uint64_t generation, Version version, std::size_t next_change) {
  if (host.generation != generation) return;
  if (encode_stopped_) return feed(host, relay::EncodeEnded{version, "", ""});
  if (next_change == changes_.size()) return produce_end(host, version);
  const std::size_t block = changes_[next_change];
  const std::uint64_t value = contents_.at(published_.at(version))[block];
  feed(host, relay::RecordProduced{
                 seal(host, version, RecordType::frame, host.log[version].size(), encode({{block, value}}))});
  at(now_ + 1ms, [this, &host, generation, version, next_change] {
    produce(host, generation, version, next_change + 1);
  });
}

void Fleet::produce_end(Host& host, Version version) {
  codec::EndPayload end;
  end.frame_count = changes_.size();
  end.image = published_.at(version);
  end_produced_[version] = now_;
  feed(host, relay::RecordProduced{seal(host, version, RecordType::end, host.log[version].size(), end.encode())});
  feed(host, relay::EncodeEnded{version, "", ""});
}

// ------------------------------------------------------------------------------------------------ the shell's part

void Fleet::apply(Host& host, relay::LogPosition position) {
  const RecordPtr record = host.log.at(position.version).at(raw(position.sequence));
  relay::FrameApplied event{position.version, position.sequence, 0, 0, {}, "", ""};
  const Blocks& base = committed_content(host);
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
  if (raw(host.committed.version) == 0) return false;
  if (committed_content(host)[block] == value) return true;
  const relay::RefitNode& refit = host.core->refit_node();
  const relay::RefitEntry* entry = host.core->log().find(refit.version());
  if (!in_flight || refit.phase() == relay::RefitNode::Phase::undoing || entry == nullptr) return false;
  auto target = targets_.find({entry->version, entry->begun});
  return target != targets_.end() && contents_.at(target->second)[block] == value;
}

void Fleet::perform(Host& host, const relay::Action& action) {
  const auto commit = [&](const RecordPtr& end_record, Duration delay_) {
    auto end = codec::EndPayload::decode(end_record->payload());
    assert(end);
    RecordPtr layout = host.sync_layout ? host.sync_layout : host.committed.layout_record;
    host.committed = relay::ImageState{end_record->header.version, end->image, end_record, layout};
    host.epoch = std::max(host.epoch, end_record->header.epoch);
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
    return transmit(host, a->link, record->bytes.size(), true, [this, record](Host& to, LinkId id) {
      feed(to, relay::FrameReceived{id, record});
    });
  }
  if (const auto* a = std::get_if<relay::AppendRecord>(&action)) {
    auto& records = host.log[a->record->header.version];
    if (raw(a->record->header.sequence) != records.size()) violation_ = host.spec.name + ": log out of order";
    records.push_back(a->record);
    return;
  }
  if (const auto* a = std::get_if<relay::DropRefit>(&action)) {
    host.log.erase(a->version);
    host.synced.erase(a->version);
    return;
  }
  if (const auto* a = std::get_if<relay::ApplyRecord>(&action)) return apply(host, a->position);
  if (const auto* a = std::get_if<relay::SyncImage>(&action))
    return later(host, 2ms, relay::ImageSynced{a->version, digest_of_image(host.image), "", ""});
  if (const auto* a = std::get_if<relay::SaveCommit>(&action)) return commit(a->end_record, 2ms);
  if (const auto* a = std::get_if<relay::CompareWithBase>(&action)) {
    relay::BaseCompared event{a->version, {}, "", ""};
    const Blocks& base = committed_content(host);
    for (std::size_t i = 0; i < base.size(); ++i)
      if (host.image[i] != base[i]) event.differing.push_back(i);
    return later(host, 3ms, event);
  }
  if (const auto* a = std::get_if<relay::PrepareSync>(&action)) {
    host.sync_end = a->end_record;
    host.sync_layout = a->layout_record;
    host.sync_table.clear();
    if (!std::exchange(host.has_image, true)) host.image.assign(contents_.begin()->second.size(), 0);
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
      if (!std::binary_search(a->wanted.begin(), a->wanted.end(), piece.block)) continue;
      const bool right = is_wanted(host, piece.block, piece.value, a->accept_in_flight);
      if (right) host.image[piece.block] = piece.value;
      (right ? event.verified : event.refused).push_back(piece.block);
    }
    return later(host, 1ms, event);
  }
  if (const auto* a = std::get_if<relay::VerifyImage>(&action)) {
    // Reading takes its time: whether the image is the same at the end is the core's to see to.
    return at(now_ + 20ms, [this, &host, attempt = a->attempt, generation = host.generation] {
      if (host.generation != generation) return;
      relay::ImageVerified event{attempt, {}};
      const Blocks& truth = committed_content(host);
      for (std::size_t i = 0; i < truth.size(); ++i)
        if (host.image[i] != truth[i]) event.result.damaged.push_back({"block", i});
      event.result.damaged_blocks = event.result.damaged.size();
      event.result.version = host.committed.version;
      event.result.state = event.result.damaged.empty() ? relay::VerifyState::ok : relay::VerifyState::damaged;
      feed(host, event);
    });
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
      for (std::uint64_t block : committed_content(host)) message.digests.push_back(digest_of_block(block));
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
  if (const auto* a = std::get_if<relay::SaveManifest>(&action)) {
    host.pending = relay::PendingRefit{a->version, a->base, std::nullopt};
    host.highest_used = a->version;
    return later(host, 1ms, relay::ManifestSaved{a->version, "", ""});
  }
  if (const auto* a = std::get_if<relay::SealBegin>(&action)) {
    return at(now_ + 1ms, [this, &host, action = *a, generation = host.generation] {
      if (host.generation == generation) produce_begin(host, action.version, action.base);
    });
  }
  if (const auto* a = std::get_if<relay::StartEncode>(&action)) {
    encode_stopped_ = false;
    return at(now_ + 1ms, [this, &host, action = *a, generation = host.generation] {
      if (host.generation != generation) return;
      produce_begin(host, action.version, action.base);
      produce(host, generation, action.version, 0);
    });
  }
  if (std::get_if<relay::StopEncode>(&action) != nullptr) {
    encode_stopped_ = true;
    return;
  }
  if (const auto* a = std::get_if<relay::SaveDecision>(&action)) {
    host.pending->decision = a->commit;
    host.synced[a->version] = host.log.at(a->version).size();
    const auto type = a->commit ? RecordType::commit : RecordType::abort;
    const RecordPtr record = seal(host, a->version, type, raw(a->sequence), {});
    return later(host, 2ms, relay::DecisionSaved{record, "", ""});
  }
}

}  // namespace deltarelay::sim
