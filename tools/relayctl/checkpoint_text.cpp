// make and step; diff and info are in checkpoint_listing.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>

#include "tools/relayctl/checkpoint_text.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"
#include "tools/synthetic/staged_output.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;
using synthetic::StepCounts;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Enough digits for one changed element in a million.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.4g} %", 100 * share(part, whole));
}

/// How often weights of each size change, small ones first; sizes that hardly occur say nothing.
std::string exponent_table(const StepCounts& counts) {
  Table table({{"old value"}, {"elements", Align::right}, {"changed", Align::right}, {"share", Align::right}}, "  ");
  for (std::size_t i = 0; i < counts.exponent_elements.size(); ++i) {
    if (counts.exponent_elements[i] == 0) continue;
    const std::string name = i == 0 ? "0" : i == 255 ? "not finite" : fmt::format("2^{}", static_cast<int>(i) - 127);
    table.add({name, human_count(counts.exponent_elements[i]), human_count(counts.exponent_changed[i]),
               percent(counts.exponent_changed[i], counts.exponent_elements[i])});
  }
  return table.text();
}

json::array exponents_json(const StepCounts& counts) {
  json::array out;
  for (std::size_t i = 0; i < counts.exponent_elements.size(); ++i) {
    if (counts.exponent_elements[i] == 0) continue;
    out.emplace_back(json::object{{"exponent", static_cast<int>(i) - 127},
                                  {"elements", counts.exponent_elements[i]},
                                  {"changed", counts.exponent_changed[i]}});
  }
  return out;
}

}  // namespace

std::string make_text(const std::string& directory, const synthetic::MakeReport& report,
                      const synthetic::MakeOptions& options) {
  const synthetic::Model& model = report.model;
  std::string out = fmt::format("made     {}: {} {} in {} tensors and {} {}, seed {}\n", directory,
                                human_bytes(model.bytes), codec::dtype_name(model.dtype), model.tensors.size(),
                                report.shards, report.shards == 1 ? "shard" : "shards", options.seed);
  out += fmt::format("model    {} layers, hidden {}, MLP {}, {} heads ({} for keys), vocabulary {}\n", model.layers,
                     model.hidden, model.intermediate, model.heads, model.key_heads, human_count(model.vocabulary));
  if (report.masters_bytes > 0)
    out += fmt::format("masters  {} FP32 in {}\n", human_bytes(report.masters_bytes),
                       synthetic::masters_path(directory).string());
  return out;
}

json::object make_json(const std::string& directory, const synthetic::MakeReport& report,
                       const synthetic::MakeOptions& options) {
  const synthetic::Model& model = report.model;
  json::object out;
  out["schema"] = "deltarelay.checkpoint.make/1";
  out["directory"] = directory;
  out["seed"] = std::to_string(options.seed);
  out["dtype"] = codec::dtype_name(model.dtype);
  out["tensors"] = model.tensors.size();
  out["tensor_bytes"] = model.bytes;
  out["shards"] = report.shards;
  out["layers"] = model.layers;
  out["hidden_size"] = model.hidden;
  out["vocabulary"] = model.vocabulary;
  out["masters_bytes"] = report.masters_bytes;
  return out;
}

std::string step_text(const std::string& directory, const std::string& from, const synthetic::StepReport& report,
                      const synthetic::StepOptions& options, bool by_exponent) {
  const StepCounts& counts = report.counts;
  std::string out =
      fmt::format("made     {} from {}: {} in {} {}, seed {}\n", directory, from, human_bytes(report.bytes),
                  report.shards, report.shards == 1 ? "shard" : "shards", options.seed);
  out += fmt::format("masters  {}\n", report.masters_were_kept ? "as the step before left them"
                                                               : "drawn: none were kept beside the source");
  out += fmt::format("changed  {} of {} elements: {} ({:.4g} % asked for)\n", human_count(counts.changed),
                     human_count(counts.elements), percent(counts.changed, counts.elements), 100 * options.change);
  out += fmt::format("update   {:.3g} per weight (standard deviation), found on {} elements\n",
                     static_cast<double>(report.update_size), human_count(report.sampled));
  if (counts.narrow_changed > 0) {
    const auto part = [&](std::size_t i) { return percent(counts.by_distance[i], counts.narrow_changed); };
    out += fmt::format("steps    by 1 {}, by 2 {}, by 3 to 7 {}, by more {} (of the bit pattern, 16-bit elements)\n",
                       part(0), part(1), part(2), part(3));
  }
  if (by_exponent) out += exponent_table(counts);
  return out;
}

json::object step_json(const std::string& directory, const std::string& from, const synthetic::StepReport& report,
                       const synthetic::StepOptions& options) {
  const StepCounts& counts = report.counts;
  json::object out;
  out["schema"] = "deltarelay.checkpoint.step/1";
  out["directory"] = directory;
  out["from"] = from;
  out["seed"] = std::to_string(options.seed);
  out["tensor_bytes"] = report.bytes;
  out["shards"] = report.shards;
  out["masters"] = report.masters_were_kept ? "kept" : "drawn";
  out["elements"] = counts.elements;
  out["changed_elements"] = counts.changed;
  out["change_asked"] = options.change;
  out["change"] = share(counts.changed, counts.elements);
  out["update_size"] = static_cast<double>(report.update_size);
  out["sampled_elements"] = report.sampled;
  out["steps"] = json::object{{"elements", counts.narrow_changed},
                              {"by_1", share(counts.by_distance[0], counts.narrow_changed)},
                              {"by_2", share(counts.by_distance[1], counts.narrow_changed)},
                              {"by_3_to_7", share(counts.by_distance[2], counts.narrow_changed)},
                              {"by_more", share(counts.by_distance[3], counts.narrow_changed)}};
  out["exponents"] = exponents_json(counts);
  return out;
}

}  // namespace deltarelay::relayctl
