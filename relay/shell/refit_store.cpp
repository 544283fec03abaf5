#include "relay/shell/refit_store.hpp"

#include <cassert>
#include <set>

#include "codec/payloads.hpp"
#include "relay/shell/marker_store.hpp"

namespace deltarelay::relay {
namespace {

constexpr StripeId only_stripe{0};

/// What was asked for before the image was lost, and comes to its turn while it is not open.
constexpr const char* not_open = "IMAGE_NOT_OPEN";
constexpr const char* not_open_text = "the image is not open, or of no version";

std::vector<std::string> tensors_of(const codec::Layout& layout, const std::vector<std::uint64_t>& ordinals) {
  std::vector<std::string> names;
  for (const std::uint64_t ordinal : ordinals) {
    const std::string& name = layout.tensor(layout.block_at(ordinal).tensor).name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

StoreResult<void> write_companions(HostStore& store, const Image& image, Version version) {
  std::optional<StoreError> failure;
  auto read = for_each_record(store, version, [&](const codec::RecordPtr& record) {
    if (record->header.type != codec::RecordType::file) return true;
    auto file = codec::FilePayload::decode(record->payload());
    if (!file) {
      failure = StoreError{file.error(), "decode a file of the refit in", store.options().state_dir.string(), 0};
      return false;
    }
    if (auto written = image.write_companion(*file); !written) failure = written.error();
    return !failure;
  });
  if (failure) return *failure;
  return read;
}

}  // namespace

StoreResult<void> for_each_record(HostStore& store, Version version,
                                  const std::function<bool(const codec::RecordPtr&)>& visit) {
  for (Sequence sequence{};; sequence = codec::next(sequence)) {
    auto record = store.log().read(version, only_stripe, sequence);
    if (!record) {
      if (record.error().code == store_errc::not_in_log) return {};
      return record.error();
    }
    if (!visit(*record)) return {};
  }
}

FrameApplied apply_record(HostStore& store, const std::shared_ptr<DigestTable>& table, LogPosition position) {
  FrameApplied event{position.version, position.sequence, 0, 0, {}, "", ""};
  const auto fail = [&](const StoreError& error) {
    event.error_code = reason_code(error);
    event.error_text = error.text();
    return event;
  };
  auto record = store.log().read(position.version, only_stripe, position.sequence);
  if (!record) return fail(record.error());
  if ((*record)->header.type != codec::RecordType::frame) return event;
  const auto image = store.image();
  assert(image && table);
  ApplyOutcome outcome = image->with_worker([&](ApplyWorker& worker) { return worker.apply(**record, *table); });
  if (outcome.error) return fail(*outcome.error);
  event.applied = outcome.applied;
  event.already = outcome.already;
  event.needs_repair = std::move(outcome.needs_repair);
  return event;
}

ImageSynced sync_image(HostStore& store, Version version) {
  const auto image = store.image();
  const auto table = store.table();
  if (!image || !table) return ImageSynced{version, {}, not_open, not_open_text};
  const auto fail = [&](const StoreError& error) { return ImageSynced{version, {}, reason_code(error), error.text()}; };
  if (auto same = image->image().check_identity(); !same) return fail(same.error());
  if (store.options().is_root)
    if (auto synced = image->image().sync(); !synced) return fail(synced.error());
  return ImageSynced{version, codec::digest_of(std::span<const codec::Digest>(table->fold())), "", ""};
}

CommitSaved save_commit(HostStore& store, const SaveCommit& action) {
  const auto fail = [&](const StoreError& error) { return CommitSaved{{}, reason_code(error), error.text()}; };
  const auto image = store.image();
  const auto table = store.table();
  if (!image || !table) return CommitSaved{{}, not_open, not_open_text};
  auto end = codec::EndPayload::decode(action.end_record->payload());
  assert(end);  // the log index decoded it before
  std::vector<codec::Digest> digests = table->fold();
  // The state before PREPARED was that this holds; asked again, because the ledger is what the host is believed by.
  if (codec::digest_of(std::span<const codec::Digest>(digests)) != end->image)
    return CommitSaved{{}, "IMAGE_DIGEST_MISMATCH", "the digest table is not the one that the root sealed"};
  // Long may have passed since PREPARED: what was applied must be what engines see.
  if (auto same = image->image().check_identity(); !same) return fail(same.error());
  // Held since the refit's first record was applied, and then free at once; never to be taken for granted.
  auto engines = image->image().try_hold_engines();
  if (!engines) return fail(engines.error());
  if (!*engines) return CommitSaved{{}, engine_reads_code, "an engine reads the image; the commit waits for it"};
  if (auto written = write_companions(store, image->image(), action.version); !written) return fail(written.error());
  if (auto saved = store.ledger().save_digests(action.version, digests); !saved) return fail(saved.error());
  LedgerRecord& record = store.record();
  record.committed = action.version;
  record.image = end->image;
  record.end_record = action.end_record->bytes;
  record.highest_used = std::max(record.highest_used, action.version);
  record.epoch = std::max(record.epoch, action.end_record->header.epoch);
  if (auto saved = store.save_ledger(); !saved) return fail(saved.error());
  auto names = tensors_of(image->layout(), table->changed());
  store.set_table(std::make_shared<DigestTable>(std::move(digests)));
  // From here on the host has the version; what is left is housekeeping, and a failure of it is not one of the commit.
  mark_committed_or_later(store, std::move(names));
  (void)store.ledger().remove_other_digests(action.version).has_error();
  return CommitSaved{image_state_of(record), "", ""};
}

BaseCompared compare_with_base(HostStore& store, Version version) {
  BaseCompared event{version, {}, "", ""};
  const auto image = store.image();
  const auto table = store.table();
  if (!image || !table) return BaseCompared{version, {}, not_open, not_open_text};
  const codec::Layout& layout = image->layout();
  const auto fail = [&](const StoreError& error) {
    event.error_code = reason_code(error);
    event.error_text = error.text();
    return event;
  };
  if (auto same = image->image().check_identity(); !same) return fail(same.error());
  std::set<std::uint64_t> touched;
  auto read = for_each_record(store, version, [&](const codec::RecordPtr& record) {
    if (record->header.type != codec::RecordType::frame) return true;
    if (auto view = codec::FrameView::parse(record->payload()))
      for (const codec::FrameEntry& entry : view->entries)
        if (layout.contains(entry.id)) touched.insert(layout.ordinal(entry.id));
    return true;
  });
  if (!read) return fail(read.error());
  std::vector<std::byte> block;
  for (const std::uint64_t ordinal : touched) {
    const codec::BlockId id = layout.block_at(ordinal);
    block.resize(layout.size_of(id));
    if (auto copied = image->image().read_block(id, block); !copied) return fail(copied.error());
    if (codec::digest_of(codec::Bytes(block)) != table->base()[ordinal]) event.differing.push_back(ordinal);
  }
  if (!event.differing.empty()) return event;
  if (auto marked = correct_to_committed(store); !marked) return fail(marked.error());
  return event;
}

}  // namespace deltarelay::relay
