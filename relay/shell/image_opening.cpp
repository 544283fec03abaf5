#include "relay/shell/image_opening.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "codec/payloads.hpp"
#include "relay/shell/image_mending.hpp"
#include "relay/shell/marker_store.hpp"
#include "relay/shell/root_store.hpp"
#include "relay/store/engine_lock.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;

ImageFailed failed(const HostStore& store, const StoreError& error) {
  std::string text = error.text();
  if (error.code == store_errc::engine_reads)
    if (const std::string who = engines_reading(store.options().image_dir); !who.empty()) text += ": " + who;
  return ImageFailed{reason_code(error), std::move(text), error.code != store_errc::corrupt};
}

/// Nothing to open: no directory, no checkpoint in it, or one whose making was cut off.
bool holds_no_checkpoint(const std::filesystem::path& directory, std::uint32_t block_bytes) {
  std::error_code error;
  if (!std::filesystem::exists(directory, error) || std::filesystem::exists(directory / ".deltarelay.creating", error))
    return true;
  auto checkpoint = codec::Checkpoint::open(directory, block_bytes);
  return !checkpoint && checkpoint.error().code == codec::errc::no_checkpoint;
}

/// What the refits that lead from the committed version and were not aborted say of each block.
class Explanations {
 public:
  Explanations(HostStore& store, const codec::Layout& layout)
      : layout_(layout), base_(store.record().committed), base_image_(store.record().image) {
    (void)store.log().for_each_recovered([this](const codec::RecordPtr& record) { add(*record); }).has_error();
  }
  /// The refit that explains, if any.
  [[nodiscard]] Version refit() const { return targets_.empty() ? Version{} : targets_.begin()->second.version; }
  [[nodiscard]] bool explain(std::uint64_t ordinal, const codec::Digest& found) const {
    auto [begin, end] = targets_.equal_range(ordinal);
    return std::any_of(begin, end, [&](const auto& target) { return target.second.digest == found; });
  }

 private:
  struct Target {
    Version version{};
    codec::Digest digest;
  };

  void add(const codec::Record& record) {
    const Version version = record.header.version;
    if (record.header.type == codec::RecordType::begin) {
      auto begin = codec::BeginPayload::decode(record.payload());
      // As Node::start_refit_if_due(): a refit that will never be gone on with would explain blocks for good.
      const bool leads_on = begin && begin->base == base_ && begin->base_image == base_image_ && version > base_;
      follows_ = leads_on ? version : Version{};
      if (follows_ == version) targets_.clear();  // an older one from the same base was aborted (LogIndex::append)
    }
    if (follows_ != version) return;
    if (record.header.type == codec::RecordType::abort)
      std::erase_if(targets_, [&](const auto& target) { return target.second.version == version; });
    if (record.header.type != codec::RecordType::frame) return;
    auto view = codec::FrameView::parse(record.payload());
    if (!view) return;
    for (const codec::FrameEntry& entry : view->entries)
      if (layout_.contains(entry.id)) targets_.emplace(layout_.ordinal(entry.id), Target{version, entry.target});
  }

  const codec::Layout& layout_;
  Version base_;
  codec::Digest base_image_;
  Version follows_{};  ///< whose records explain blocks
  std::unordered_multimap<std::uint64_t, Target> targets_;
};

std::optional<StoreError> keep_engines_out(Image& image) {
  auto held = image.try_hold_engines();
  if (!held) return held.error();
  if (*held) return std::nullopt;
  return StoreError{make_error_code(store_errc::engine_reads), "put back blocks of",
                    image.checkpoint().directory().string(), 0};
}

struct Differences {
  std::uint64_t count = 0;              ///< that nothing explains
  std::optional<codec::BlockId> first;  ///< of them
  Version on_the_way{};                 ///< the refit that explains others; 0: there are none
};

Differences unexplained(HostStore& store, const codec::Layout& layout, const std::vector<codec::Digest>& stated,
                        const std::vector<codec::Digest>& found) {
  Differences out;
  const Explanations explanations(store, layout);
  for (std::uint64_t ordinal = 0; ordinal < found.size(); ++ordinal) {
    if (found[ordinal] == stated[ordinal]) continue;
    if (explanations.explain(ordinal, found[ordinal])) {
      out.on_the_way = explanations.refit();
      continue;
    }
    if (out.count++ == 0) out.first = layout.block_at(ordinal);
  }
  return out;
}

/// Applies again what the log holds of the refit that led to the committed version; `found` follows. The block rule
/// needs no base digest here: a block is written only if it decodes to the digest that the root sealed. Error
/// engine_reads when there is something to write and an engine reads.
StoreResult<void> replay(HostStore& store, OpenImage& image, const std::vector<codec::Digest>& stated,
                         std::vector<codec::Digest>& found) {
  const codec::Layout& layout = image.layout();
  const auto concerns_lost_block = [&](const codec::Record& record) {
    auto view = codec::FrameView::parse(record.payload());
    return view && std::ranges::any_of(view->entries, [&](const codec::FrameEntry& entry) {
             if (!layout.contains(entry.id)) return false;
             const std::uint64_t ordinal = layout.ordinal(entry.id);
             return entry.target == stated[ordinal] && found[ordinal] != stated[ordinal];
           });
  };
  DigestTable table(found);
  std::optional<StoreError> failure;
  (void)store.log()
      .for_each_recovered([&](const codec::RecordPtr& record) {
        if (record->header.version != store.record().committed || record->header.type != codec::RecordType::frame)
          return;
        if (failure || !concerns_lost_block(*record)) return;
        if (failure = keep_engines_out(image.image()); failure) return;
        (void)image.with_worker([&](ApplyWorker& worker) { return worker.apply(*record, table); });
      })
      .has_error();
  if (failure) return *failure;
  std::vector<std::byte> block;
  for (const std::uint64_t ordinal : table.changed()) {
    const codec::BlockId id = layout.block_at(ordinal);
    block.resize(layout.size_of(id));
    if (image.image().read_block(id, block)) found[ordinal] = codec::digest_of(codec::Bytes(block));
  }
  return {};
}

/// The committed version could not be proved: a relay starts without one, a root cannot.
Event not_proved(HostStore& store, const std::string& why) {
  store.set_table(nullptr);
  // Before anything else: engines must not take what is there for what the marker said of it.
  auto marked = correct_to_no_version(store);
  if (!marked && !store.options().is_root) return failed(store, marked.error());
  if (store.options().is_root)
    return ImageFailed{
        "IMAGE_DAMAGED",
        fmt::format(
            "{} is not version {} as the ledger states: {}. Try: put the checkpoint of that version back and restart",
            store.options().image_dir.string(), raw(store.record().committed), why),
        false};
  store.note(Note::Level::warn, "IMAGE_DAMAGED",
             fmt::format("{} is not version {} as the ledger states: {}; block sync brings it back",
                         store.options().image_dir.string(), raw(store.record().committed), why));
  return ImageOpened{};
}

Event prove(HostStore& store, OpenImage& image, std::vector<codec::Digest> found) {
  LedgerRecord& record = store.record();
  if (codec::digest_of(std::span<const codec::Digest>(found)) == record.image) {
    if (auto marked = correct_to_committed(store); !marked) return failed(store, marked.error());
    store.set_table(std::make_shared<DigestTable>(std::move(found)));
    return ImageOpened{image_state_of(record)};
  }
  auto stated = store.ledger().load_digests(record.committed, record.image);
  if (!stated) return not_proved(store, stated.error().text());
  if (stated->size() != found.size())
    return not_proved(store, fmt::format("it has {} blocks, the ledger states {}", found.size(), stated->size()));
  if (auto replayed = replay(store, image, *stated, found); !replayed) return failed(store, replayed.error());
  const Differences differences = unexplained(store, image.layout(), *stated, found);
  if (differences.count != 0)
    return not_proved(store, fmt::format("{} blocks differ, the first is block {} of {}", differences.count,
                                         raw(differences.first->block),
                                         codec::display_name(image.layout().tensor(differences.first->tensor).name)));
  auto marked = raw(differences.on_the_way) != 0 ? correct_to_applying(store, differences.on_the_way)
                                                 : correct_to_committed(store);
  if (!marked) return failed(store, marked.error());
  store.set_table(std::make_shared<DigestTable>(std::move(*stated)));
  return ImageOpened{image_state_of(record)};
}

}  // namespace

StoreResult<std::shared_ptr<OpenImage>> open_directory(HostStore& store) {
  auto lock = store.lock_image();
  if (!lock) return lock.error();
  auto image = Image::open(store.options().image_dir, store.options().block_bytes, std::move(*lock));
  if (!image) return image.error();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(store.options().state_dir, error))
    if (entry.path().filename().string().starts_with("slot-"))
      if (auto recovered = recover_slot(entry.path(), **image); !recovered) return recovered.error();
  std::vector<std::unique_ptr<ApplyWorker>> workers;
  for (unsigned i = 0; i < store.options().apply_threads; ++i) {
    auto worker = ApplyWorker::open(store.slot_path(i), **image);
    if (!worker) return worker.error();
    workers.push_back(std::move(*worker));
  }
  if (!store.options().is_root) remember_shape(store, **image);
  return std::make_shared<OpenImage>(std::move(*image), std::move(workers));
}

Event open_image(HostStore& store, const std::atomic<bool>& cancel) {
  const HostStoreOptions& options = store.options();
  if (!options.is_root) {
    if (auto mended = mend_image(store); !mended) return failed(store, mended.error());
    if (holds_no_checkpoint(options.image_dir, options.block_bytes)) {
      store.set_image(nullptr);  // what was open before is not there any more
      store.set_table(nullptr);
      return ImageOpened{};
    }
  }
  auto opened = open_directory(store);
  if (!opened) return failed(store, opened.error());
  store.set_image(*opened);
  // Held for what was left to write, if anything was; a refit that goes on takes the lock anew.
  struct Release {
    OpenImage& image;
    ~Release() { image.image().release_engines(); }
  } release{**opened};
  const bool has_version = raw(store.record().committed) != 0;
  if (!has_version && !options.is_root) {
    store.set_table(nullptr);
    if (auto marked = correct_to_no_version(store); !marked) return failed(store, marked.error());
    return ImageOpened{};  // block sync hashes it against the parent's
  }
  auto found = hash_image((*opened)->image(), options.apply_threads, cancel);
  if (!found) return failed(store, found.error());
  if (has_version) return prove(store, **opened, std::move(*found));
  if (auto sealed = seal_first_version(store, **opened, std::move(*found)); !sealed)
    return failed(store, sealed.error());
  return ImageOpened{image_state_of(store.record())};
}

}  // namespace deltarelay::relay
