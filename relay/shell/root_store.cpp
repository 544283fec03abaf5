#include "relay/shell/root_store.hpp"

#include <algorithm>
#include <cassert>

#include "codec/companion_files.hpp"
#include "codec/limits.hpp"
#include "relay/shell/marker_store.hpp"
#include "relay/store/image_shape.hpp"

namespace deltarelay::relay {
namespace {

codec::RecordPtr seal(const HostStore& store, codec::RecordType type, Version version, Sequence sequence, Epoch epoch,
                      codec::Bytes payload) {
  codec::RecordHeader header;
  header.type = type;
  header.mesh = store.options().mesh;
  header.epoch = epoch;
  header.version = version;
  header.sequence = sequence;
  return codec::seal_record(header, payload, store.signer());
}

StoreError from_codec(const codec::Failure& failure) {
  return {failure.code, "read", failure.where, 0};
}

}  // namespace

StoreResult<void> seal_first_version(HostStore& store, const OpenImage& image, std::vector<codec::Digest> digests) {
  const codec::Checkpoint& checkpoint = image.image().checkpoint();
  auto layout = describe_files(checkpoint);
  if (!layout) return from_codec(layout.error());
  auto companions = codec::read_companions(checkpoint);
  if (!companions) return from_codec(companions.error());
  LedgerRecord& record = store.record();
  const Version version = codec::next(record.highest_used);
  codec::EndPayload end;
  end.image = codec::digest_of(std::span<const codec::Digest>(digests));
  end.layout_digest = checkpoint.layout()->digest();
  for (const codec::FilePayload& file : *companions) end.companions.push_back(codec::describe(file));
  const auto layout_bytes = layout->encode();
  if (layout_bytes.size() > codec::payload_bytes_max(codec::RecordType::layout))
    return StoreError{make_error_code(codec::errc::table_too_large), "describe the shards of",
                      checkpoint.directory().string(), 0};
  if (auto saved = store.ledger().save_digests(version, digests); !saved) return saved;
  record.committed = record.highest_used = version;
  record.image = end.image;
  record.layout_record =
      seal(store, codec::RecordType::layout, version, Sequence{0}, record.epoch, layout_bytes)->bytes;
  record.end_record = seal(store, codec::RecordType::end, version, Sequence{1}, record.epoch, end.encode())->bytes;
  if (auto saved = store.save_ledger(); !saved) return saved;
  store.set_table(std::make_shared<DigestTable>(std::move(digests)));
  return mark_committed(store, {});
}

ManifestSaved save_manifest(HostStore& store, const SaveManifest& action) {
  LedgerRecord& record = store.record();
  record.manifest = RootManifest{action.version, action.base, ManifestState::open};
  record.highest_used = std::max(record.highest_used, action.version);
  if (auto saved = store.save_ledger(); !saved)
    return ManifestSaved{action.version, reason_code(saved.error()), saved.error().text()};
  return ManifestSaved{action.version, "", ""};
}

DecisionSaved save_decision(HostStore& store, const SaveDecision& action) {
  LedgerRecord& record = store.record();
  assert(record.manifest && record.manifest->version == action.version);
  record.manifest->state = action.commit ? ManifestState::commit : ManifestState::abort;
  if (auto saved = store.save_ledger(); !saved)
    return DecisionSaved{nullptr, reason_code(saved.error()), saved.error().text()};
  const std::string why = action.commit ? std::string() : action.why.substr(0, 4 * codec::kib);
  const auto type = action.commit ? codec::RecordType::commit : codec::RecordType::abort;
  return DecisionSaved{seal(store, type, action.version, action.sequence, record.epoch, std::as_bytes(std::span(why))),
                       "", ""};
}

}  // namespace deltarelay::relay
