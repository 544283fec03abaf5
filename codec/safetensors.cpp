#include "codec/safetensors.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "codec/limits.hpp"
#include "codec/strict_json.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::string_view metadata_key = "__metadata__";

struct RawEntry {
  SafetensorsEntry entry;
  std::uint64_t end = 0;
};

/// Walks the header's events. One place_ at a time; fields that the format does not know are skipped whole, as the
/// reference does.
class HeaderEvents final : public JsonEvents {
 public:
  std::vector<RawEntry> entries;
  std::optional<Failure> failure;

  bool begin_object() override {
    if (skipped_depth_ > 0) return ++skipped_depth_, true;
    switch (place_) {
      case Place::document:
        place_ = Place::root;
        return true;
      case Place::root:
        return begin_root_value();
      case Place::entry:
        return begin_skip("an object");
      default:
        return wrong_value("an object");
    }
  }
  bool end_object() override {
    if (skipped_depth_ > 0) return --skipped_depth_, true;
    if (place_ == Place::entry && !finish_entry()) return false;
    place_ = place_ == Place::root ? Place::document : Place::root;
    return true;
  }
  bool begin_array() override {
    if (skipped_depth_ > 0) return ++skipped_depth_, true;
    if (place_ == Place::entry && field_ == Field::shape) return place_ = Place::shape, seen_shape_ = true;
    if (place_ == Place::entry && field_ == Field::offsets) return place_ = Place::offsets, true;
    if (place_ == Place::entry) return begin_skip("a list");
    return wrong_value("a list");
  }
  bool end_array() override {
    if (skipped_depth_ > 0) return --skipped_depth_, true;
    if (place_ == Place::offsets && offset_count_ != 2)
      return fail_entry(errc::tensor_info_invalid, "data_offsets needs two numbers");
    place_ = Place::entry;
    return true;
  }
  bool key(std::string_view name) override {
    if (skipped_depth_ > 0) return true;
    if (place_ == Place::root) return begin_tensor(name);
    if (place_ != Place::entry) return true;
    field_ = name == "dtype"          ? Field::dtype
             : name == "shape"        ? Field::shape
             : name == "data_offsets" ? Field::offsets
                                      : Field::unknown;
    return true;
  }
  bool string(std::string_view text) override {
    if (skipped_depth_ > 0 || place_ == Place::metadata) return true;
    if (place_ != Place::entry || field_ != Field::dtype) return scalar("a string");
    const auto dtype = dtype_from_name(text);
    if (!dtype) return fail_entry(errc::dtype_unknown, display_name(text));
    spec().dtype = *dtype;
    seen_dtype_ = true;
    return true;
  }
  bool integer(std::uint64_t value) override {
    if (skipped_depth_ > 0) return true;
    if (place_ == Place::shape) {
      if (spec().shape.size() == tensor_rank_max)
        return fail_entry(errc::tensor_info_invalid, "more than " + std::to_string(tensor_rank_max) + " dimensions");
      spec().shape.push_back(value);
      return true;
    }
    if (place_ != Place::offsets) return scalar("a number");
    if (offset_count_ < 2) (offset_count_ == 0 ? entries.back().entry.begin : entries.back().end) = value;
    ++offset_count_;
    return true;
  }
  bool other(std::string_view text) override { return skipped_depth_ > 0 || scalar(text); }

 private:
  enum class Place { document, root, metadata, entry, shape, offsets };
  enum class Field { unknown, dtype, shape, offsets };

  TensorSpec& spec() { return entries.back().entry.spec; }

  bool fail(errc code, std::string why) {
    failure = Failure{code, {}, std::move(why)};
    return false;
  }
  bool fail_entry(errc code, const std::string& why) {
    return fail(code, "tensor " + display_name(spec().name) + ": " + why);
  }
  bool wrong_value(std::string_view found) {
    const std::string text(found);
    switch (place_) {
      case Place::document:
        return fail(errc::header_not_json, "found " + text);
      case Place::root:
        if (in_metadata_key_) return fail(errc::metadata_invalid, "found " + text);
        return fail_entry(errc::tensor_info_invalid, "found " + text + " where an entry is needed");
      case Place::metadata:
        return fail(errc::metadata_invalid, "found " + text + " as a value");
      case Place::entry:
        return fail_entry(errc::tensor_info_invalid, "found " + text + " as " + field_name());
      case Place::shape:
        return fail_entry(errc::tensor_info_invalid, "found " + text + " as a dimension");
      case Place::offsets:
        return fail_entry(errc::tensor_info_invalid, "found " + text + " as an offset");
    }
    return false;
  }
  std::string field_name() const {
    return field_ == Field::dtype ? "dtype" : field_ == Field::shape ? "shape" : "data_offsets";
  }
  bool scalar(std::string_view found) {
    return (place_ == Place::entry && field_ == Field::unknown) || wrong_value(found);
  }
  bool begin_skip(std::string_view found) {
    if (field_ != Field::unknown) return wrong_value(found);
    skipped_depth_ = 1;
    return true;
  }
  bool begin_tensor(std::string_view name) {
    in_metadata_key_ = name == metadata_key;
    if (in_metadata_key_) return true;
    if (entries.size() == tensor_count_max)
      return fail(errc::too_many_tensors, "more than " + std::to_string(tensor_count_max));
    entries.emplace_back();
    spec().name = name;
    return true;
  }
  bool begin_root_value() {
    place_ = in_metadata_key_ ? Place::metadata : Place::entry;
    field_ = Field::unknown;
    seen_dtype_ = seen_shape_ = false;
    offset_count_ = 0;
    return true;
  }
  bool finish_entry() {
    const char* missing = !seen_dtype_         ? "dtype"
                          : !seen_shape_       ? "shape"
                          : offset_count_ == 0 ? "data_offsets"
                                               : nullptr;
    return missing == nullptr || fail_entry(errc::tensor_info_invalid, std::string(missing) + " is missing");
  }

  Place place_ = Place::document;
  Field field_ = Field::unknown;
  std::size_t skipped_depth_ = 0;  // containers open inside an unknown field
  std::size_t offset_count_ = 0;
  bool in_metadata_key_ = false, seen_dtype_ = false, seen_shape_ = false;
};

std::string range_text(const RawEntry& raw) {
  return "tensor " + display_name(raw.entry.spec.name) + ": data_offsets [" + std::to_string(raw.entry.begin) + "," +
         std::to_string(raw.end) + "]";
}

/// Every byte of the data section has exactly one owner, and each range is what dtype and shape ask for.
Checked<SafetensorsHeader> check_ranges(std::vector<RawEntry> raw, std::uint64_t header_bytes,
                                        std::uint64_t file_bytes) {
  std::ranges::sort(raw, {}, [](const RawEntry& r) { return std::pair{r.entry.begin, r.end}; });
  SafetensorsHeader header{header_bytes, {}};
  header.tensors.reserve(raw.size());
  std::uint64_t next = 0;
  for (RawEntry& r : raw) {
    if (r.entry.begin != next || r.end < r.entry.begin)
      return Failure{
          errc::tensor_offsets_invalid, {}, range_text(r) + ", expected to begin at " + std::to_string(next)};
    TensorSpec& spec = r.entry.spec;
    const auto bytes = tensor_bytes(spec.dtype, spec.shape);
    if (!bytes) return Failure{bytes.error(), {}, range_text(r)};
    if (*bytes != r.end - r.entry.begin)
      return Failure{errc::tensor_size_mismatch,
                     {},
                     range_text(r) + ", shape and dtype need " + std::to_string(*bytes) + " bytes"};
    spec.bytes = *bytes;
    next = r.end;
    header.tensors.push_back(std::move(r.entry));
  }
  const std::uint64_t data_bytes = file_bytes - header_bytes;
  if (next != data_bytes)
    return Failure{
        errc::data_incomplete,
        {},
        "the tensors end at byte " + std::to_string(next) + " of a data section of " + std::to_string(data_bytes)};
  return header;
}

}  // namespace

Checked<std::uint64_t> safetensors_header_bytes(Bytes prefix, std::uint64_t file_bytes) {
  if (file_bytes < safetensors_prefix_bytes || prefix.size() < safetensors_prefix_bytes)
    return Failure{errc::header_too_small, {}, "the file has " + std::to_string(file_bytes) + " bytes"};
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < safetensors_prefix_bytes; ++i) n |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
  if (n > safetensors_header_bytes_max)
    return Failure{errc::header_too_large,
                   {},
                   "length " + std::to_string(n) + ", limit " + std::to_string(safetensors_header_bytes_max)};
  if (n > file_bytes - safetensors_prefix_bytes)
    return Failure{errc::header_too_large,
                   {},
                   "length " + std::to_string(n) + ", the file has " + std::to_string(file_bytes) + " bytes"};
  return safetensors_prefix_bytes + n;
}

Checked<SafetensorsHeader> parse_safetensors_header(Bytes head, std::uint64_t file_bytes) {
  const auto header_bytes = safetensors_header_bytes(head, file_bytes);
  if (!header_bytes) return header_bytes.error();
  if (head.size() < *header_bytes)
    return Failure{
        errc::truncated, {}, std::to_string(head.size()) + " of " + std::to_string(*header_bytes) + " header bytes"};
  const Bytes body = head.subspan(safetensors_prefix_bytes, *header_bytes - safetensors_prefix_bytes);
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  if (!text.starts_with('{')) return Failure{errc::header_not_json, {}, "the header does not begin with a brace"};
  HeaderEvents events;
  if (const auto problem = parse_json(text, events)) {
    switch (problem->kind) {
      case JsonProblem::Kind::stopped:
        return *events.failure;
      case JsonProblem::Kind::duplicate_key:
        return Failure{errc::header_key_duplicate, {}, problem->text};
      case JsonProblem::Kind::syntax:
        return Failure{errc::header_not_json, {}, problem->text};
    }
  }
  return check_ranges(std::move(events.entries), *header_bytes, file_bytes);
}

std::vector<std::byte> make_safetensors_header(std::span<const TensorSpec> tensors) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    json += ',';
    json += json_quoted(tensor.name);
    json += R"(:{"dtype":")";
    json += dtype_name(tensor.dtype);
    json += R"(","shape":[)";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i > 0) json += ',';
      json += std::to_string(tensor.shape[i]);
    }
    json += R"(],"data_offsets":[)";
    json += std::to_string(offset);
    json += ',';
    json += std::to_string(offset + tensor.bytes);
    json += "]}";
    offset += tensor.bytes;
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  std::vector<std::byte> out;
  out.reserve(safetensors_prefix_bytes + json.size());
  for (std::size_t i = 0; i < safetensors_prefix_bytes; ++i)
    out.push_back(static_cast<std::byte>((json.size() >> (8 * i)) & 0xff));
  const Bytes body = std::as_bytes(std::span{json});
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

}  // namespace deltarelay::codec
