#include "relay/store/verify.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "codec/checkpoint.hpp"
#include "codec/payloads.hpp"
#include "codec/record.hpp"
#include "relay/store/file_ops.hpp"
#include "relay/store/ledger.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;

StoreError from_codec(const codec::Failure& failure, const std::filesystem::path& directory) {
  return {failure.code, "open checkpoint" + (failure.why.empty() ? "" : " (" + failure.why + ")"),
          failure.where.empty() ? directory.string() : failure.where, 0};
}

/// The payload of a stored record, or nothing when it is not one whole record.
codec::Bytes payload_of(codec::Bytes record) {
  const auto header = codec::decode_record_header(record);
  if (!header || record.size() != codec::record_header_bytes + header->payload_bytes) return {};
  return record.subspan(codec::record_header_bytes);
}

std::optional<codec::Layout> committed_layout(const LedgerRecord& ledger, VerifyReport& report) {
  if (ledger.layout_record.empty()) return std::nullopt;
  auto payload = codec::LayoutPayload::decode(payload_of(ledger.layout_record));
  if (payload) {
    if (auto layout = codec::Layout::decode(payload->layout)) return std::move(*layout);
  }
  report.findings.push_back("the ledger's LAYOUT record does not decode");
  return std::nullopt;
}

void compare_end(const LedgerRecord& ledger, VerifyReport& report) {
  if (ledger.end_record.empty()) return;
  const auto end = codec::EndPayload::decode(payload_of(ledger.end_record));
  if (!end)
    report.findings.push_back("the ledger's END record does not decode");
  else if (end->image != ledger.image)
    report.findings.push_back(fmt::format("the ledger states digest {}, its END record {}", codec::to_hex(ledger.image),
                                          codec::to_hex(end->image)));
}

/// Links are followed, as whoever loads the image does.
StoreResult<std::vector<File>> open_shards(const codec::Checkpoint& checkpoint) {
  std::vector<File> files;
  for (const codec::ShardFile& shard : checkpoint.shards()) {
    const auto path = checkpoint.directory() / shard.name;
    files.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
    if (files.back().descriptor() < 0) return system_error(errno, "open", path.string());
    struct stat status {};
    if (::fstat(files.back().descriptor(), &status) != 0) return system_error(errno, "stat", path.string());
    if (status.st_dev != shard.identity.device || status.st_ino != shard.identity.inode)
      return StoreError{make_error_code(store_errc::replaced), "open", path.string(), 0};
  }
  return files;
}

/// By calls and not through a mapping, which would make the whole image part of the process's memory.
StoreResult<std::vector<codec::Digest>> hash_blocks(const codec::Checkpoint& checkpoint, const VerifyWatch& watch) {
  auto files = open_shards(checkpoint);
  if (!files) return files.error();
  const auto& layout = *checkpoint.layout();
  std::vector<codec::Digest> table(layout.block_count());
  std::vector<std::byte> block;
  std::uint64_t checked_bytes = 0;
  for (std::uint64_t ordinal = 0; ordinal < table.size(); ++ordinal) {
    const auto id = layout.block_at(ordinal);
    const auto& place = checkpoint.places().at(raw(id.tensor));
    const File& file = files->at(place.shard);
    const std::uint64_t offset = place.file_offset + layout.offset_of(id);
    block.resize(layout.size_of(id));
    auto read = FileOps::real().read_at(file, offset, block);
    if (!read) return read.error();
    if (*read != block.size())
      return StoreError{make_error_code(store_errc::replaced), "read", file.path().string(), offset};
    table[ordinal] = codec::digest_of(codec::Bytes(block));
    checked_bytes += block.size();
    if (watch && !watch(checked_bytes, layout.total_bytes()))
      return StoreError{boost::system::errc::make_error_code(boost::system::errc::operation_canceled), "verify",
                        checkpoint.directory().string(), checked_bytes};
  }
  return table;
}

void compare_blocks(const codec::Layout& layout, const std::vector<codec::Digest>& stated,
                    const std::vector<codec::Digest>& found, VerifyReport& report) {
  if (stated.size() != found.size()) {
    report.findings.push_back(fmt::format("the ledger knows {} blocks, the image has {}", stated.size(), found.size()));
    return;
  }
  for (std::uint64_t ordinal = 0; ordinal < found.size(); ++ordinal)
    if (found[ordinal] != stated[ordinal]) report.differing.push_back(layout.block_at(ordinal));
  if (report.differing.empty()) return;
  const auto& first = report.differing.front();
  report.findings.push_back(fmt::format("{} of {} blocks differ from version {}, the first is block {} of {}",
                                        report.differing.size(), found.size(), raw(report.version), raw(first.block),
                                        codec::display_name(layout.tensor(first.tensor).name)));
}

}  // namespace

StoreResult<VerifyReport> verify_image(const std::filesystem::path& directory,
                                       const std::optional<std::filesystem::path>& state_directory, bool deep,
                                       std::uint32_t block_bytes, const VerifyWatch& watch) {
  VerifyReport report;
  std::optional<LedgerRecord> ledger;
  std::optional<codec::Layout> expected;
  if (state_directory) {
    auto loaded = Ledger(*state_directory).load();
    if (!loaded) return loaded.error();
    ledger = std::move(*loaded);
    if (!ledger || ledger->committed == codec::Version{0}) {
      report.findings.push_back("the ledger states no committed version");
      ledger.reset();
    } else {
      report.version = ledger->committed;
      report.stated = ledger->image;
      expected = committed_layout(*ledger, report);
      compare_end(*ledger, report);
    }
  }
  auto checkpoint = codec::Checkpoint::open(directory, expected ? expected->block_bytes() : block_bytes);
  if (!checkpoint) return from_codec(checkpoint.error(), directory);
  const auto layout = checkpoint->layout();
  report.blocks = layout->block_count();
  report.bytes = layout->total_bytes();
  report.layout = layout;
  if (expected)
    for (auto& difference : codec::describe_difference(*expected, *layout)) report.findings.push_back(std::move(difference));
  if (!deep) return report;

  auto found = hash_blocks(*checkpoint, watch);
  if (!found) return found.error();
  report.computed = codec::digest_of(std::span<const codec::Digest>(*found));
  if (!ledger || *report.computed == ledger->image) return report;
  auto stated = Ledger(*state_directory).load_digests(ledger->committed, ledger->image);
  if (!stated) return stated.error();
  compare_blocks(*layout, *stated, *found, report);
  return report;
}

}  // namespace deltarelay::relay
