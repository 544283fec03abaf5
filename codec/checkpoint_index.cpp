#include "codec/checkpoint_index.hpp"

#include <optional>
#include <utility>

#include "codec/layout.hpp"
#include "codec/limits.hpp"
#include "codec/strict_json.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::string_view shard_suffix = ".safetensors";

bool shard_name_valid(std::string_view name) noexcept {
  return name.size() > shard_suffix.size() && name.size() <= 255 && name.ends_with(shard_suffix) &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

/// Only the strings of the top-level "weight_map" count; everything else is passed over.
class IndexEvents final : public JsonEvents {
 public:
  std::map<std::string, std::string, std::less<>> assigned;
  std::optional<Failure> failure;

  bool begin_object() override {
    ++depth_;
    if (depth_ == 1) return true;
    if (depth_ == 2 && map_key_) return map_seen_ = in_map_ = true;
    return !in_map_ || wrong_value();
  }
  bool end_object() override {
    if (depth_ == 2) in_map_ = false;
    --depth_;
    return true;
  }
  bool begin_array() override {
    ++depth_;
    return depth_ > 1 ? !in_map_ || wrong_value() : fail(errc::index_invalid, "not an object");
  }
  bool end_array() override { return --depth_, true; }
  bool key(std::string_view name) override {
    if (depth_ == 1) map_key_ = name == "weight_map";
    if (in_map_) tensor_ = name;
    return true;
  }
  bool string(std::string_view text) override {
    if (!in_map_) return true;
    if (assigned.size() == tensor_count_max)
      return fail(errc::too_many_tensors, "more than " + std::to_string(tensor_count_max));
    if (!shard_name_valid(text))
      return fail(errc::index_invalid, "tensor " + display_name(tensor_) + " is in " + display_name(text) +
                                           ", which is no plain name ending in .safetensors");
    assigned.emplace(std::move(tensor_), text);
    tensor_.clear();
    return true;
  }
  bool integer(std::uint64_t) override { return !in_map_ || wrong_value(); }
  bool other(std::string_view) override { return !in_map_ || wrong_value(); }

  [[nodiscard]] bool map_seen() const noexcept { return map_seen_; }

 private:
  bool fail(errc code, std::string why) {
    failure = Failure{code, {}, std::move(why)};
    return false;
  }
  bool wrong_value() { return fail(errc::index_invalid, "tensor " + display_name(tensor_) + " has no file name"); }

  std::string tensor_;
  std::size_t depth_ = 0;
  bool map_key_ = false, in_map_ = false, map_seen_ = false;
};

}  // namespace

Checked<CheckpointIndex> parse_checkpoint_index(std::string_view json) {
  IndexEvents events;
  if (const auto problem = parse_json(json, events)) {
    switch (problem->kind) {
      case JsonProblem::Kind::stopped:
        return *events.failure;
      case JsonProblem::Kind::duplicate_key:
        return Failure{errc::index_invalid, {}, problem->text + " appears twice"};
      case JsonProblem::Kind::syntax:
        return Failure{errc::index_invalid, {}, "not JSON: " + problem->text};
    }
  }
  if (!events.map_seen()) return Failure{errc::index_invalid, {}, "no object \"weight_map\""};
  if (events.assigned.empty()) return Failure{errc::index_invalid, {}, "weight_map is empty"};

  std::map<std::string, std::uint32_t, std::less<>> place;
  for (const auto& [tensor, shard] : events.assigned) place.emplace(shard, 0);
  if (place.size() > shard_count_max)
    return Failure{errc::too_many_tensors, {}, std::to_string(place.size()) + " shards"};
  CheckpointIndex index;
  for (auto& [shard, at] : place) {
    at = static_cast<std::uint32_t>(index.shards.size());
    index.shards.push_back(shard);
  }
  for (const auto& [tensor, shard] : events.assigned)
    index.map.emplace_hint(index.map.end(), tensor, place.find(shard)->second);
  return index;
}

}  // namespace deltarelay::codec
