// diff and info of checkpoint_text.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "tools/relayctl/checkpoint_text.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;
using codec::TensorSpec;

constexpr std::size_t listed_max = 20;

std::string_view word(Difference kind) {
  switch (kind) {
    case Difference::only_in_a:
      return "only_in_a";
    case Difference::only_in_b:
      return "only_in_b";
    case Difference::declared_otherwise:
      return "declared_otherwise";
    case Difference::content:
      return "content";
  }
  return "";
}

std::string sentence(const TensorDifference& difference) {
  switch (difference.kind) {
    case Difference::only_in_a:
      return "only in the first";
    case Difference::only_in_b:
      return "only in the second";
    case Difference::declared_otherwise:
      return difference.detail;
    case Difference::content:
      break;
  }
  return fmt::format("{} of {} elements differ, from byte {} on", human_count(difference.changed_elements),
                     human_count(difference.elements), human_count(difference.first_byte));
}

std::string sentence(const FileDifference& difference) {
  if (difference.kind == Difference::only_in_a) return "file only in the first";
  if (difference.kind == Difference::only_in_b) return "file only in the second";
  return fmt::format("file differs from byte {} on", human_count(difference.first_byte));
}

std::string more_line(std::size_t total, std::string_view what) {
  return fmt::format("  and {} more {} (-o wide lists all)\n", total - listed_max, what);
}

struct Kind {
  std::uint64_t tensors = 0, bytes = 0;
};

std::map<std::string_view, Kind> by_dtype(const codec::Layout& layout) {
  std::map<std::string_view, Kind> out;
  for (const TensorSpec& tensor : layout.tensors()) {
    Kind& kind = out[codec::dtype_name(tensor.dtype)];
    ++kind.tensors;
    kind.bytes += tensor.bytes;
  }
  return out;
}

/// Shown to whoever has a terminal: names and paths come from files.
std::string shown(std::string_view name) {
  return codec::display_name(name);
}

}  // namespace

std::string diff_text(const CheckpointDiff& diff, bool all) {
  const std::string compared = fmt::format("{} tensors, {}", human_count(diff.tensors), human_bytes(diff.bytes));
  if (diff.same()) return fmt::format("same: {}, every bit\n", compared);
  std::string out = fmt::format(
      "differs: {} of {} elements in {} compared ({:.4g} %)\n", human_count(diff.changed_elements),
      human_count(diff.elements), compared,
      diff.elements == 0 ? 0.0 : 100 * static_cast<double>(diff.changed_elements) / static_cast<double>(diff.elements));
  Table table({{""}, {""}}, "  ");
  const std::size_t listed = all ? diff.differing.size() : std::min(listed_max, diff.differing.size());
  for (std::size_t i = 0; i < listed; ++i) table.add({shown(diff.differing[i].name), sentence(diff.differing[i])});
  for (const FileDifference& file : diff.files) table.add({shown(file.name), sentence(file)});
  out += table.text();
  if (listed < diff.differing.size()) out += more_line(diff.differing.size(), "tensors");
  return out;
}

json::object diff_json(const CheckpointDiff& diff) {
  json::array tensors, files;
  for (const TensorDifference& difference : diff.differing) {
    json::object one{{"name", difference.name}, {"difference", word(difference.kind)}};
    if (difference.kind == Difference::declared_otherwise) one["detail"] = difference.detail;
    if (difference.kind == Difference::content) {
      one["first_byte"] = difference.first_byte;
      one["changed_elements"] = difference.changed_elements;
      one["elements"] = difference.elements;
    }
    tensors.emplace_back(std::move(one));
  }
  for (const FileDifference& file : diff.files) {
    json::object one{{"name", file.name}, {"difference", word(file.kind)}};
    if (file.kind == Difference::content) one["first_byte"] = file.first_byte;
    files.emplace_back(std::move(one));
  }
  json::object out;
  out["schema"] = "deltarelay.checkpoint.diff/1";
  out["same"] = diff.same();
  out["compared_tensors"] = diff.tensors;
  out["compared_bytes"] = diff.bytes;
  out["elements"] = diff.elements;
  out["changed_elements"] = diff.changed_elements;
  out["tensors"] = std::move(tensors);
  out["files"] = std::move(files);
  return out;
}

std::string info_text(const codec::Checkpoint& checkpoint, const std::optional<codec::Digest>& image, bool all) {
  const codec::Layout& layout = *checkpoint.layout();
  std::string out =
      fmt::format("tensors  {} in {} {}, {}\n", human_count(layout.tensors().size()), checkpoint.shards().size(),
                  checkpoint.shards().size() == 1 ? "shard" : "shards", human_bytes(layout.total_bytes()));
  for (const auto& [name, kind] : by_dtype(layout))
    out += fmt::format("         {}: {} tensors, {}\n", name, human_count(kind.tensors), human_bytes(kind.bytes));
  out += fmt::format("layout   {} ({} blocks of {})\n", codec::to_hex(layout.digest()),
                     human_count(layout.block_count()), human_bytes(layout.block_bytes()));
  if (image) out += fmt::format("content  {}\n", codec::to_hex(*image));
  Table shards({{"shard"}, {"size", Align::right}}, "  ");
  for (const codec::ShardFile& shard : checkpoint.shards())
    shards.add({shown(shard.name), human_bytes(shard.identity.bytes)});
  out += shards.text();
  for (const std::string& name : checkpoint.companions()) out += fmt::format("beside   {}\n", shown(name));
  for (const std::string& name : checkpoint.ignored_files()) out += fmt::format("ignored  {}\n", shown(name));
  if (!all) return out;
  Table tensors({{"tensor"}, {"type"}, {"size", Align::right}, {"shard"}}, "  ");
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorSpec& tensor = layout.tensors()[i];
    tensors.add({shown(tensor.name), declaration_text(tensor), human_bytes(tensor.bytes),
                 shown(checkpoint.shards()[checkpoint.places()[i].shard].name)});
  }
  return out + tensors.text();
}

json::object info_json(const codec::Checkpoint& checkpoint, const std::optional<codec::Digest>& image) {
  const codec::Layout& layout = *checkpoint.layout();
  json::object out;
  out["schema"] = "deltarelay.checkpoint.info/1";
  out["tensor_count"] = layout.tensors().size();
  out["tensor_bytes"] = layout.total_bytes();
  out["block_bytes"] = layout.block_bytes();
  out["block_count"] = layout.block_count();
  out["layout_digest"] = codec::to_hex(layout.digest());
  if (image) out["content_digest"] = codec::to_hex(*image);
  json::object dtypes;
  for (const auto& [name, kind] : by_dtype(layout))
    dtypes[name] = json::object{{"tensors", kind.tensors}, {"tensor_bytes", kind.bytes}};
  out["dtypes"] = std::move(dtypes);
  json::array shards, tensors;
  for (const codec::ShardFile& shard : checkpoint.shards())
    shards.emplace_back(json::object{{"name", shard.name}, {"file_bytes", shard.identity.bytes}});
  out["shards"] = std::move(shards);
  out["companions"] = json::array(checkpoint.companions().begin(), checkpoint.companions().end());
  out["ignored"] = json::array(checkpoint.ignored_files().begin(), checkpoint.ignored_files().end());
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorSpec& tensor = layout.tensors()[i];
    tensors.emplace_back(json::object{{"name", tensor.name},
                                      {"dtype", codec::dtype_name(tensor.dtype)},
                                      {"shape", json::array(tensor.shape.begin(), tensor.shape.end())},
                                      {"tensor_bytes", tensor.bytes},
                                      {"shard", checkpoint.shards()[checkpoint.places()[i].shard].name}});
  }
  out["tensors"] = std::move(tensors);
  return out;
}

}  // namespace deltarelay::relayctl
