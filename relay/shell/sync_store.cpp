#include "relay/shell/sync_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codec/companion_files.hpp"
#include "codec/limits.hpp"
#include "relay/shell/image_opening.hpp"
#include "relay/shell/marker_store.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;

/// What comes past it is asked for again with a new manifest, when the image may be written.
constexpr std::uint64_t early_files_bytes_max = 64 * codec::mib;

SyncFailed failed(const StoreError& error) {
  return SyncFailed{reason_code(error), error.text(), true};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "; ") + line;
  return out;
}

}  // namespace

// ------------------------------------------------------------------------------------------------ child

std::optional<SyncFailed> SyncReceiver::prepare(const PrepareSync& action) {
  active_ = begun_ = false;
  const auto bad = [](std::string text) { return SyncFailed{"MANIFEST_INVALID", std::move(text), true}; };
  for (const codec::RecordPtr& record : {action.layout_record, action.end_record})
    if (auto verified = codec::verify_record(*record, store_.options().mesh, store_.verifier()); !verified)
      return bad("a record of the manifest is refused: " + verified.error().message());
  if (action.layout_record->header.type != codec::RecordType::layout ||
      action.end_record->header.type != codec::RecordType::end)
    return bad("the manifest's records are not LAYOUT and END");
  auto shards = codec::LayoutPayload::decode(action.layout_record->payload());
  auto end = codec::EndPayload::decode(action.end_record->payload());
  if (!shards || !end) return bad("the manifest's records do not decode");
  auto layout = codec::Layout::decode(shards->layout);
  if (!layout || layout->digest() != end->layout_digest) return bad("LAYOUT and END of the manifest disagree");

  std::shared_ptr<OpenImage> image = store_.image();
  if (!image) {
    if (auto made = Image::create(store_.options().image_dir, *shards); !made) return failed(made.error());
    auto opened = open_directory(store_);
    if (!opened) return failed(opened.error());
    image = *opened;
    store_.set_image(image);
  }
  if (image->layout().digest() != layout->digest())
    return SyncFailed{
        "LAYOUT_DIFFERS",
        fmt::format("{} holds another model than the mesh: {}. Try: empty the directory and restart relayd",
                    store_.options().image_dir.string(),
                    joined(codec::describe_difference(image->layout(), *layout, 5))),
        false};
  target_ = SyncTarget{action.layout_record, action.end_record, std::move(*end), {}};
  files_missing_.clear();
  early_files_.clear();
  early_bytes_ = 0;
  for (const codec::CompanionFile& file : target_.end.companions) {
    auto here = codec::read_companion(store_.options().image_dir, file.name);
    if (!here || here->sha256 != file.sha256) files_missing_.insert(file.name);
  }
  active_ = true;
  return std::nullopt;
}

Event SyncReceiver::begin(const std::atomic<bool>& cancel) {
  const auto fail = [&](const StoreError& error) {
    active_ = false;
    return failed(error);
  };
  const std::shared_ptr<OpenImage> image = store_.image();
  const Version version = target_.end_record->header.version;
  LedgerRecord& record = store_.record();
  record.committed = Version{};
  record.image = {};
  if (auto saved = store_.save_ledger(); !saved) return fail(saved.error());
  if (auto marked = mark_applying(store_, Version{}, version); !marked) return fail(marked.error());
  auto found = hash_image(image->image(), store_.options().apply_threads, cancel);
  if (!found) return fail(found.error());
  found_ = std::move(*found);
  begun_ = true;
  early_bytes_ = 0;
  for (const codec::FilePayload& file : std::exchange(early_files_, {}))
    if (auto written = write_file(file); !written) return fail(written.error());
  return SyncPrepared{version};
}

std::optional<Event> SyncReceiver::store_digests(const StoreSyncDigests& action) {
  if (!active_) return std::nullopt;
  if (action.first == 0) target_.digests.clear();
  const std::uint64_t count = store_.image()->layout().block_count();
  if (action.first != target_.digests.size() || action.digests.size() > count - target_.digests.size()) {
    active_ = false;
    return SyncFailed{"MANIFEST_INVALID", "the parent's digest table does not fit the layout", true};
  }
  target_.digests.insert(target_.digests.end(), action.digests.begin(), action.digests.end());
  return std::nullopt;
}

std::optional<Event> SyncReceiver::compare() {
  if (!active_ || !begun_ || target_.digests.size() != found_.size()) return std::nullopt;
  if (codec::digest_of(std::span<const codec::Digest>(target_.digests)) != target_.end.image) {
    active_ = false;
    return SyncFailed{"MANIFEST_INVALID", "the parent's digest table is not the one that the root sealed", true};
  }
  SyncCompared event{target_.end_record->header.version, {}};
  for (std::uint64_t ordinal = 0; ordinal < found_.size(); ++ordinal)
    if (found_[ordinal] != target_.digests[ordinal]) event.missing.push_back(ordinal);
  store_.set_sync_target(std::make_shared<SyncTarget>(target_));
  return event;
}

void SyncReceiver::give_up() {
  active_ = begun_ = false;
  early_files_.clear();
  found_ = {};
  target_ = {};
  store_.set_sync_target(nullptr);
}

std::string SyncReceiver::apply_file(const ApplySyncFile& action) {
  if (!active_) return {};
  auto file = codec::FilePayload::decode(action.file_payload);
  if (!file) return "a companion file from the parent does not decode";
  const auto named = std::ranges::find(target_.end.companions, file->name, &codec::CompanionFile::name);
  if (named == target_.end.companions.end() || named->sha256 != file->sha256)
    return fmt::format("companion file {} from the parent is not the one that the root sealed",
                       codec::display_name(file->name));
  if (files_missing_.count(file->name) == 0) return {};
  if (begun_) {
    auto written = write_file(*file);
    return written ? std::string() : written.error().text();
  }
  if (early_bytes_ + file->content.size() > early_files_bytes_max)
    return fmt::format("companion file {} came before it may be written and is asked for again",
                       codec::display_name(file->name));
  early_bytes_ += file->content.size();
  early_files_.push_back(std::move(*file));
  return {};
}

StoreResult<void> SyncReceiver::write_file(const codec::FilePayload& file) {
  if (auto written = store_.image()->image().write_companion(file); !written) return written;
  files_missing_.erase(file.name);
  return {};
}

CommitSaved SyncReceiver::save(const SaveSynced& action) {
  const auto fail = [&](const StoreError& error) { return CommitSaved{{}, reason_code(error), error.text()}; };
  const auto target = store_.sync_target();
  if (!active_ || !target || target->end_record->header.version != action.version)
    return CommitSaved{{}, "SYNC_AGAIN", "the block sync that this belongs to was given up"};
  if (auto same = store_.image()->image().check_identity(); !same) return fail(same.error());
  if (auto saved = store_.ledger().save_digests(action.version, target->digests); !saved) return fail(saved.error());
  LedgerRecord& record = store_.record();
  record.committed = action.version;
  record.image = target->end.image;
  record.layout_record = target->layout_record->bytes;
  record.end_record = target->end_record->bytes;
  record.highest_used = std::max(record.highest_used, action.version);
  record.epoch = std::max(record.epoch, target->end_record->header.epoch);
  if (auto saved = store_.save_ledger(); !saved) return fail(saved.error());
  store_.set_table(std::make_shared<DigestTable>(target->digests));
  store_.set_sync_target(nullptr);
  active_ = begun_ = false;
  found_ = {};
  target_ = {};
  mark_committed_or_later(store_, {});
  (void)store_.ledger().remove_other_digests(action.version).has_error();
  return CommitSaved{image_state_of(record), "", ""};
}

SyncBlocksApplied apply_sync_blocks(HostStore& store, const ApplySyncBlocks& action) {
  SyncBlocksApplied event;
  const auto image = store.image();
  const auto target = store.sync_target();
  const auto table = store.table();
  auto view = codec::FrameView::parse(action.frame_payload);
  if (!view || !image || (!target && !table)) {
    event.error_code = "SYNC_BLOCKS_INVALID";
    event.error_text = view ? "blocks came and no image waits for any"
                            : "blocks from the parent do not parse: " + view.error().message();
    return event;
  }
  const auto is_wanted = [&](const codec::FrameEntry& entry) {
    return image->layout().contains(entry.id) &&
           std::ranges::binary_search(action.wanted, image->layout().ordinal(entry.id));
  };
  std::erase_if(view->entries, [&](const codec::FrameEntry& entry) { return !is_wanted(entry); });
  if (view->entries.empty()) return event;
  const std::vector<std::byte> payload = codec::build_frame(view->tables, view->entries);
  std::set<std::uint64_t> refused;
  for (const codec::FrameEntry& entry : view->entries) refused.insert(image->layout().ordinal(entry.id));
  std::set<std::uint64_t> verified;
  const auto apply = [&](const std::vector<codec::Digest>& wanted) {
    const ApplyOutcome outcome =
        image->with_worker([&](ApplyWorker& worker) { return worker.apply_sync(payload, wanted); });
    if (outcome.error) {
      event.error_code = reason_code(*outcome.error);
      event.error_text = outcome.error->text();
      return;
    }
    const std::set<std::uint64_t> left(outcome.needs_repair.begin(), outcome.needs_repair.end());
    std::erase_if(refused,
                  [&](std::uint64_t ordinal) { return left.count(ordinal) == 0 && verified.insert(ordinal).second; });
  };
  apply(target ? target->digests : table->base());
  if (!target && action.accept_in_flight && !refused.empty() && event.error_code.empty()) apply(table->fold());
  if (!event.error_code.empty()) return event;
  event.verified.assign(verified.begin(), verified.end());
  event.refused.assign(refused.begin(), refused.end());
  return event;
}

// ------------------------------------------------------------------------------------------------ parent

std::shared_ptr<const std::vector<codec::Digest>> sync_digests(const HostStore& store) {
  if (const auto target = store.sync_target()) return {target, &target->digests};
  if (const auto table = store.table()) return {table, &table->base()};
  return nullptr;
}

std::optional<SyncFile> read_sync_file(const HostStore& store, const codec::CompanionFile& named) {
  auto file = codec::read_companion(store.options().image_dir, named.name);
  if (!file || file->sha256 != named.sha256) return std::nullopt;
  return SyncFile{file->encode()};
}

ServedBlocks read_sync_blocks(const HostStore& store, std::vector<std::uint64_t> ordinals) {
  ServedBlocks out;
  std::ranges::sort(ordinals);
  ordinals.erase(std::unique(ordinals.begin(), ordinals.end()), ordinals.end());
  const auto image = store.image();
  const auto target = store.sync_target();
  const auto table = store.table();
  if (!image || (!target && !table)) {
    out.unavailable = ordinals;
    return out;
  }
  const codec::Layout& layout = image->layout();
  const auto wanted = [&](std::uint64_t ordinal, const codec::Digest& digest) {
    if (target) return target->digests[ordinal] == digest;
    return table->base()[ordinal] == digest || table->target(ordinal) == digest;
  };
  std::vector<codec::BlockInput> inputs;
  std::vector<std::vector<std::byte>> contents;
  contents.reserve(ordinals.size());
  for (const std::uint64_t ordinal : ordinals) {
    if (ordinal >= layout.block_count()) {
      out.unavailable.push_back(ordinal);
      continue;
    }
    const codec::BlockId id = layout.block_at(ordinal);
    std::vector<std::byte> content(layout.size_of(id));
    if (!image->image().read_block(id, content) || !wanted(ordinal, codec::digest_of(codec::Bytes(content)))) {
      out.unavailable.push_back(ordinal);
      continue;
    }
    contents.push_back(std::move(content));
    inputs.push_back({id, layout.tensor(id.tensor).dtype, {}, contents.back()});
  }
  if (inputs.empty()) return out;
  thread_local codec::FrameEncoder encoder;
  std::vector<codec::EncodedFrame> frames;
  encoder.encode(inputs, frames);
  for (codec::EncodedFrame& frame : frames) out.messages.push_back(SyncBlocks{std::move(frame.payload)});
  return out;
}

}  // namespace deltarelay::relay
