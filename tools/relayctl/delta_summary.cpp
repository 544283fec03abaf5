#include "tools/relayctl/delta_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <set>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;
using codec::Checked;
using codec::errc;
using codec::Failure;
using codec::raw;

std::string hex_of(codec::Bytes bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return out;
}

class Summarizer {
 public:
  explicit Summarizer(DeltaSummary& out) : out_(out) {}

  Checked<void> add(const codec::Record& record) {
    const std::string where = out_.path + ", record " + std::to_string(raw(record.header.sequence));
    return record.header.type == codec::RecordType::frame ? add_frame(record, where) : add_file(record, where);
  }

  Checked<void> finish() {
    std::ranges::sort(out_.targets);
    const auto twice = std::ranges::adjacent_find(out_.targets, {}, [](const auto& target) { return target.first; });
    if (twice != out_.targets.end())
      return refused(
          fmt::format("block {} of tensor {} comes twice", raw(twice->first.block), raw(twice->first.tensor)));
    if (out_.end.changed_blocks != out_.targets.size())
      return refused(
          fmt::format("END counts {} blocks, the frames hold {}", out_.end.changed_blocks, out_.targets.size()));
    for (const codec::CompanionFile& file : out_.files)
      if (std::ranges::find(out_.end.companions, file) == out_.end.companions.end())
        return refused("END does not list " + file.name + " as it is in the file");
    return {};
  }

 private:
  Failure refused(std::string why) const { return {errc::malformed_payload, out_.path, std::move(why)}; }

  Checked<void> add_frame(const codec::Record& record, const std::string& where) {
    auto frame = codec::FrameView::parse(record.payload());
    if (!frame) return Failure{frame.error(), where, "FRAME"};
    std::uint64_t data_bytes = 0;
    for (const codec::FrameEntry& entry : frame->entries) {
      const auto encoding = static_cast<std::size_t>(entry.encoding);
      ++out_.stats.blocks_by_encoding[encoding];
      out_.stats.payload_bytes_by_encoding[encoding] += entry.data.size();
      data_bytes += entry.data.size();
      out_.targets.emplace_back(entry.id, entry.target);
    }
    out_.stats.changed_blocks += frame->entries.size();
    out_.stats.overhead_bytes += record.payload().size() - data_bytes;
    out_.frame_payload_bytes += record.payload().size();
    return {};
  }

  Checked<void> add_file(const codec::Record& record, const std::string& where) {
    auto file = codec::FilePayload::decode(record.payload());
    if (!file) return Failure{file.error(), where, "FILE"};
    if (!names_.insert(file->name).second) return Failure{errc::malformed_payload, where, file->name + " comes twice"};
    out_.files.push_back({file->name, file->content.size(), file->sha256});
    return {};
  }

  DeltaSummary& out_;
  std::set<std::string> names_;
};

}  // namespace

std::string mesh_hex(const codec::MeshId& mesh) {
  return hex_of(mesh.bytes);
}

Checked<DeltaSummary> read_delta(const std::filesystem::path& path, const codec::ContentVerifier* verifier) {
  auto reader = codec::DeltaFileReader::open(path, verifier);
  if (!reader) return reader.error();
  DeltaSummary out;
  out.path = path.string();
  out.identity = (*reader)->identity();
  out.begin = (*reader)->begin();
  out.is_signed = (*reader)->is_signed();
  Summarizer summarizer(out);
  while (true) {
    auto record = (*reader)->next();
    if (!record) return record.error();
    if (*record == nullptr) break;
    if (auto added = summarizer.add(**record); !added) return added.error();
  }
  out.end = *(*reader)->end();
  out.skipped_records = (*reader)->skipped_records();
  std::error_code ignored;
  out.file_bytes = std::filesystem::file_size(path, ignored);
  if (auto whole = summarizer.finish(); !whole) return whole.error();
  return out;
}

json::array encodings_json(const codec::FrameStats& stats) {
  json::array out;
  for (std::size_t i = 0; i < codec::encoding_count; ++i) {
    if (stats.blocks_by_encoding[i] == 0) continue;
    json::object row;
    row["name"] = codec::encoding_name(static_cast<codec::Encoding>(i));
    row["blocks"] = stats.blocks_by_encoding[i];
    row["payload_bytes"] = stats.payload_bytes_by_encoding[i];
    out.push_back(std::move(row));
  }
  return out;
}

std::string encodings_text(const codec::FrameStats& stats) {
  Table table({{"encoding"}, {"blocks", Align::right}, {"bytes", Align::right}, {"per block", Align::right}});
  for (std::size_t i = 0; i < codec::encoding_count; ++i) {
    const std::uint64_t blocks = stats.blocks_by_encoding[i], bytes = stats.payload_bytes_by_encoding[i];
    if (blocks == 0) continue;
    table.add({codec::encoding_name(static_cast<codec::Encoding>(i)), human_count(blocks), human_bytes(bytes),
               human_bytes(bytes / blocks)});
  }
  table.add({"tables and digests", "", human_bytes(stats.overhead_bytes), ""});
  return table.text();
}

json::object summary_json(const DeltaSummary& summary) {
  json::object out;
  out["schema"] = "deltarelay.delta/1";
  out["file"] = summary.path;
  out["file_bytes"] = summary.file_bytes;
  out["signed"] = summary.is_signed;
  out["mesh_id"] = mesh_hex(summary.identity.mesh);
  out["epoch"] = std::to_string(raw(summary.identity.epoch));
  out["version"] = std::to_string(raw(summary.identity.version));
  out["base_version"] = std::to_string(raw(summary.begin.base));
  out["base_digest"] = codec::to_hex(summary.begin.base_image);
  out["image_digest"] = codec::to_hex(summary.end.image);
  out["layout_digest"] = codec::to_hex(summary.begin.layout_digest);
  out["block_bytes"] = summary.begin.block_bytes;
  out["image_bytes"] = summary.begin.total_bytes;
  out["frames"] = summary.end.frame_count;
  out["frame_payload_bytes"] = summary.frame_payload_bytes;
  out["overhead_bytes"] = summary.stats.overhead_bytes;
  out["changed_blocks"] = summary.end.changed_blocks;
  out["changed_elements"] = summary.end.changed_elements;
  out["encodings"] = encodings_json(summary.stats);
  json::array files;
  for (const codec::CompanionFile& file : summary.end.companions) {
    json::object row;
    row["name"] = file.name;
    row["file_bytes"] = file.bytes;
    row["sha256"] = hex_of(file.sha256);
    row["included"] = std::ranges::find(summary.files, file) != summary.files.end();
    files.push_back(std::move(row));
  }
  out["files"] = std::move(files);
  out["skipped_records"] = summary.skipped_records;
  return out;
}

std::string summary_text(const DeltaSummary& summary, bool verified) {
  const auto share = [&](std::uint64_t bytes) {
    const std::uint64_t dense = summary.begin.total_bytes;
    return dense == 0 ? std::string("-")
                      : human_percent(100.0 * static_cast<double>(bytes) / static_cast<double>(dense), 3);
  };
  Table table({{""}, {""}});
  table.add({"file", fmt::format("{}, {}, {}", summary.path, human_bytes(summary.file_bytes),
                                 !summary.is_signed ? "unsigned"
                                 : verified         ? "signed, every signature holds"
                                                    : "signed, signatures not checked (--verify-key)")});
  table.add({"base", fmt::format("v{}  {}", raw(summary.begin.base), codec::to_hex(summary.begin.base_image))});
  table.add({"version",
             fmt::format("v{}  {}  epoch {}, mesh {}", raw(summary.identity.version), codec::to_hex(summary.end.image),
                         raw(summary.identity.epoch), mesh_hex(summary.identity.mesh))});
  table.add({"image", fmt::format("{} in blocks of {}, layout {}", human_bytes(summary.begin.total_bytes),
                                  human_bytes(summary.begin.block_bytes), codec::to_hex(summary.begin.layout_digest))});
  table.add({"changed", fmt::format("{} elements in {} blocks", human_count(summary.end.changed_elements),
                                    human_count(summary.end.changed_blocks))});
  table.add({"size", fmt::format("{} of the dense bytes in {} frames", share(summary.file_bytes),
                                 human_count(summary.end.frame_count))});
  for (const codec::CompanionFile& file : summary.files)
    table.add({"carries", fmt::format("{}, {}", file.name, human_bytes(file.bytes))});
  if (const std::size_t kept = summary.end.companions.size() - summary.files.size(); kept > 0)
    table.add({"expects", fmt::format("{} other files as the base has them", kept)});
  if (summary.skipped_records > 0)
    table.add({"skipped", fmt::format("{} records of a newer release", summary.skipped_records)});
  std::string out = table.text();
  if (summary.stats.changed_blocks == 0) return out;
  out += '\n';
  out += encodings_text(summary.stats);
  return out;
}

}  // namespace deltarelay::relayctl
