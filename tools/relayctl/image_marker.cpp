#include "tools/relayctl/image_marker.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <charconv>

#include "codec/limits.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;

constexpr std::uint64_t marker_bytes_max = 64 * codec::mib;  // lists the changed tensors

std::optional<codec::Version> version_in(const json::object& object, json::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const json::string& text = value->get_string();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return codec::Version{number};
}

}  // namespace

std::optional<StatedVersion> stated_version(const std::filesystem::path& directory) {
  auto content = relay::read_file(relay::FileOps::real(), directory / "deltarelay.json", marker_bytes_max);
  if (!content) return std::nullopt;
  json::error_code failed;
  const json::value document =
      json::parse(json::string_view(reinterpret_cast<const char*>(content->data()), content->size()), failed);
  if (failed || !document.is_object()) return std::nullopt;
  const json::object& object = document.get_object();
  const auto version = version_in(object, "version");
  const json::value* state = object.if_contains("state");
  if (!version || state == nullptr || !state->is_string()) return std::nullopt;
  const bool applying = state->get_string() == "applying";
  return StatedVersion{*version, applying, version_in(object, "target").value_or(codec::Version{})};
}

}  // namespace deltarelay::relayctl
