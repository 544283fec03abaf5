#include "relay/shell/root_store.hpp"

#include <algorithm>
#include <cassert>

#include "codec/companion_files.hpp"
#include "codec/input_file.hpp"
#include "codec/limits.hpp"

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

codec::Checked<std::vector<std::byte>> read_range(const std::filesystem::path& path, std::uint64_t bytes,
                                                  std::uint64_t bytes_max) {
  auto file = codec::InputFile::open(path);
  if (!file) return file.error();
  const std::uint64_t wanted = bytes == 0 ? file->identity().bytes : bytes;
  if (wanted > bytes_max)
    return codec::Failure{make_error_code(codec::errc::table_too_large), path.string(),
                          "the file is too large to travel"};
  std::vector<std::byte> content(wanted);
  if (auto read = file->read_at(0, content); !read) return read.error();
  if (auto same = file->check_unchanged(); !same) return same.error();
  return content;
}

codec::Checked<codec::LayoutPayload> describe_layout(const codec::Checkpoint& checkpoint) {
  codec::LayoutPayload out;
  out.layout = checkpoint.layout()->encode();
  for (const codec::ShardFile& shard : checkpoint.shards()) {
    auto header = read_range(checkpoint.directory() / shard.name, shard.header_bytes, codec::table_payload_bytes_max);
    if (!header) return header.error();
    out.shards.push_back({shard.name, shard.identity.bytes, std::move(*header)});
  }
  std::ranges::sort(out.shards, {}, &codec::ShardSkeleton::name);
  if (checkpoint.has_index()) {
    auto index = read_range(checkpoint.directory() / codec::index_file_name, 0, codec::table_payload_bytes_max);
    if (!index) return index.error();
    out.index_json = std::move(*index);
  }
  return out;
}

}  // namespace

StoreResult<void> seal_first_version(HostStore& store, const OpenImage& image, std::vector<codec::Digest> digests) {
  const codec::Checkpoint& checkpoint = image.image().checkpoint();
  auto layout = describe_layout(checkpoint);
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
  ImageMarker marker;
  marker.version = version;
  marker.digest = end.image;
  return image.image().write_marker(marker);
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
