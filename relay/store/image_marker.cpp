#include "relay/store/image_marker.hpp"

#include <boost/json.hpp>
#include <span>

namespace deltarelay::relay {
namespace {

using codec::raw;

constexpr const char* marker_name = "deltarelay.json";
constexpr const char* changed_name = "changed_tensors";
constexpr std::uint64_t marker_bytes_max = 64 << 20;  // it names tensors

boost::json::object statement_of(const ImageMarker& marker) {
  boost::json::object out;
  out["schema"] = 1;
  out["version"] = std::to_string(raw(marker.version));
  out["state"] = marker.applying ? "applying" : "committed";
  if (marker.applying) out["target"] = std::to_string(raw(marker.target));
  out["digest"] = codec::to_hex(marker.digest);
  return out;
}

}  // namespace

StoreResult<void> write_marker(const std::filesystem::path& image_dir, const ImageMarker& marker) {
  boost::json::object out = statement_of(marker);
  boost::json::array changed;
  for (const auto& name : marker.changed_tensors) changed.emplace_back(name);
  out[changed_name] = std::move(changed);
  const std::string text = boost::json::serialize(out) + "\n";
  const auto path = image_dir / marker_name;
  return replace_file(FileOps::real(), path, std::as_bytes(std::span(text)), mode_of_published(path));
}

MarkerFound find_marker(const std::filesystem::path& image_dir, const ImageMarker& marker) {
  auto content = read_file(FileOps::real(), image_dir / marker_name, marker_bytes_max);
  if (!content)
    return content.error().code == boost::system::errc::no_such_file_or_directory ? MarkerFound::none
                                                                                  : MarkerFound::other;
  boost::system::error_code error;
  boost::json::value found =
      boost::json::parse({reinterpret_cast<const char*>(content->data()), content->size()}, error);
  if (error || !found.is_object()) return MarkerFound::other;
  found.get_object().erase(changed_name);
  return found.get_object() == statement_of(marker) ? MarkerFound::same : MarkerFound::other;
}

}  // namespace deltarelay::relay
