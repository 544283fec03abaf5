#include "config/topology_file.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "config/map_reader.hpp"
#include "config/name_range.hpp"
#include "config/nearest_name.hpp"

namespace deltarelay::config {
namespace {

using topology::HostIndex;
using topology::Model;
using topology::RegionIndex;

constexpr std::size_t regions_max = 256, links_max = 1024, hosts_max = 10'000, standby_max = 16;
constexpr std::size_t name_bytes_max = 64;
constexpr std::size_t labels_max = 16, label_bytes_max = 128;  // a range copies them to every host of it
constexpr std::chrono::nanoseconds rtt_max = std::chrono::seconds(10);

/// Names stand in certificates (DNS:<node>), paths and metrics: letters in lower case, digits, '-' and '.' between
/// them.
bool is_name(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (text.empty() || text.size() > name_bytes_max || !plain(text.front()) || !plain(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

bool is_label_key(std::string_view text) {
  const auto plain = [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || std::string_view("-_./").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= name_bytes_max && std::all_of(text.begin(), text.end(), plain);
}

/// DNS names are the same in either case.
std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

constexpr const char* name_rule = "is not a name; use lower-case letters, digits, '-' and '.', at most 64";

/// Names of one kind, with the place where each was first given.
class NameTable {
 public:
  explicit NameTable(const char* kind) : kind_(kind) {}

  /// False, and a finding, if the name is taken.
  bool add(const std::string& name, Position at, Findings& findings) {
    const auto [first, fresh] = places_.emplace(name, std::make_pair(names_.size(), at));
    if (fresh) {
      names_.push_back(first->first);
    } else {
      findings.add(at, std::string(kind_) + " " + shown(name) + " appears twice (first at line " +
                           std::to_string(first->second.second.line) + ")");
    }
    return fresh;
  }

  [[nodiscard]] std::optional<std::size_t> find(const std::string& name, Position at, const std::string& key,
                                                Findings& findings) const {
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second.first;
    const std::string near = findings.size() < suggestions_max ? did_you_mean(name, names_) : std::string();
    findings.add(at, key + ": unknown " + (std::string(kind_) == "node" ? "host" : kind_) + " " + shown(name) + near);
    return std::nullopt;
  }

 private:
  const char* kind_;
  std::map<std::string, std::pair<std::size_t, Position>> places_;
  std::vector<std::string_view> names_;
};

class TopologyLoader {
 public:
  explicit TopologyLoader(Findings& findings) : findings_(findings) {}

  Model load(const YamlNode& root) {
    MapReader top(root, "", findings_);
    top.required_text("mesh", model_.mesh);
    if (!model_.mesh.empty() && !is_name(model_.mesh)) top.refuse("mesh", shown(model_.mesh) + " " + name_rule);
    top.count("plan_epoch", model_.plan_epoch, 0, std::numeric_limits<std::int64_t>::max());
    section(top, "limits", &TopologyLoader::limits);
    section(top, "refit", &TopologyLoader::refit);
    section(top, "rates", &TopologyLoader::rates);
    each(top, "regions", regions_max, true, &TopologyLoader::region);
    each(top, "links", links_max, false, &TopologyLoader::link);
    each(top, "hosts", hosts_max, true, &TopologyLoader::host);
    root_and_standby(top);
    top.finish();
    return std::move(model_);
  }

  [[nodiscard]] Position region_at(std::size_t index) const { return region_places_.at(index); }
  [[nodiscard]] Position host_at(std::size_t index) const { return host_places_.at(index); }

 private:
  void section(MapReader& top, const char* key, void (TopologyLoader::*read)(MapReader&)) {
    const YamlNode* node = top.node(key);
    if (node == nullptr) return;
    MapReader map(*node, std::string(key) + ".", findings_);
    if (!map.is_map()) return;
    (this->*read)(map);
    map.finish();
  }

  void each(MapReader& top, const char* key, std::size_t most, bool is_required,
            void (TopologyLoader::*read)(MapReader&)) {
    const std::vector<YamlNode>& items = top.list(key);
    if (items.empty() && is_required && top.is_map()) top.refuse(key, "at least one is needed");
    if (items.size() > most) {
      top.refuse(key, "more than " + std::to_string(most) + " entries");
      return;
    }
    const std::string path = std::string(key).substr(0, std::string_view(key).size() - 1) + ".";
    for (const YamlNode& item : items) {
      MapReader map(item, path, findings_);
      if (!map.is_map()) continue;
      (this->*read)(map);
      map.finish();
    }
  }

  void limits(MapReader& map) {
    map.count("max_children", model_.limits.max_children, 1, 4096);
    map.count("max_candidates", model_.limits.max_candidates, 2, 64);
  }

  void refit(MapReader& map) {
    map.size("size", model_.refit.checkpoint_bytes, 1, std::uint64_t{1} << 60);
    map.share("change", model_.refit.change);
  }

  void rates(MapReader& map) {
    map.rate("encode", model_.rates.encode);
    map.rate("apply", model_.rates.apply);
  }

  void region(MapReader& map) {
    topology::Region region;
    map.required_text("name", region.name);
    (void)map.required("lan_rate");
    map.rate("lan_rate", region.lan_rate);
    map.duration("rtt", region.rtt, std::chrono::nanoseconds(0), rtt_max);
    if (region.name.empty()) return;
    if (!is_name(region.name)) map.refuse("name", shown(region.name) + " " + name_rule);
    if (!regions_.add(region.name, map.at("name"), findings_)) return;
    model_.regions.push_back(std::move(region));
    region_places_.push_back(map.at());
  }

  void link(MapReader& map) {
    topology::Link link;
    const auto from = region_named(map, "from"), to = region_named(map, "to");
    (void)map.required("rate");
    map.rate("rate", link.rate);
    (void)map.required("rtt");
    map.duration("rtt", link.rtt, std::chrono::nanoseconds(0), rtt_max);
    map.decimal("cost", link.cost);
    map.flag("transit", link.transit);
    if (!from || !to) return;
    if (*from == *to) {
      map.refuse("to",
                 "joins region " + shown(model_.regions[*from].name) + " to itself; lan_rate of the region says that");
      return;
    }
    const auto [first, fresh] = links_.emplace(std::make_pair(*from, *to), map.at().line);
    if (!fresh) {
      map.refuse("to", "link " + shown(model_.regions[*from].name) + " to " + shown(model_.regions[*to].name) +
                           " appears twice (first at line " + std::to_string(first->second) + ")");
      return;
    }
    link.from = RegionIndex{static_cast<std::uint32_t>(*from)};
    link.to = RegionIndex{static_cast<std::uint32_t>(*to)};
    model_.links.push_back(link);
  }

  std::optional<std::size_t> region_named(MapReader& map, const char* key) {
    std::string name;
    map.required_text(key, name);
    if (name.empty()) return std::nullopt;
    return regions_.find(name, map.at(key), std::string("region of ") + key, findings_);
  }

  void host(MapReader& map) {
    std::string name, address;
    map.required_text("name", name);
    map.required_text("address", address);
    topology::Host host;
    std::string region;
    map.required_text("region", region);
    if (!region.empty()) {
      const auto found = regions_.find(region, map.at("region"), "region", findings_);
      if (found) host.region = RegionIndex{static_cast<std::uint32_t>(*found)};
      if (found) host.uplink = host.downlink = model_.regions[*found].lan_rate;
    }
    host.max_children = model_.limits.max_children;
    map.rate("uplink", host.uplink);
    map.rate("downlink", host.downlink);
    map.count("max_children", host.max_children, 0, 4096);
    labels(map, host);
    if (name.empty() || address.empty()) return;
    add_hosts(map, host, name, address);
  }

  void labels(MapReader& map, topology::Host& host) {
    const YamlNode* node = map.node("labels");
    if (node == nullptr) return;
    MapReader reader(*node, "host.labels.", findings_);
    if (node->entries.size() > labels_max) {
      map.refuse("labels", "more than " + std::to_string(labels_max) + " entries");
      return;
    }
    for (const auto& entry : node->entries) {
      if (!is_label_key(entry.key)) {
        findings_.add(entry.at, "host.labels: " + shown(entry.key) +
                                    " is not a label's name; use letters, digits, '-', '_', '.' and '/', at most 64");
        continue;
      }
      std::string value;
      reader.text(entry.key, value);
      if (value.size() > label_bytes_max) {
        reader.refuse(entry.key, "is longer than " + std::to_string(label_bytes_max) + " bytes");
      }
      host.labels.emplace_back(entry.key, value);
    }
    std::sort(host.labels.begin(), host.labels.end());
  }

  /// One entry, one host or a range of them.
  void add_hosts(MapReader& map, const topology::Host& like, const std::string& name, const std::string& address) {
    const auto count = range_length(name), address_count = range_length(address);
    if (!count) map.refuse("name", shown(name) + " " + count.error().why);
    if (!address_count) map.refuse("address", shown(address) + " " + address_count.error().why);
    if (!count || !address_count) return;
    if (has_range(address) && *address_count != *count) {
      map.refuse("address",
                 "names " + std::to_string(*address_count) + " addresses for " + std::to_string(*count) + " hosts");
      return;
    }
    if (!has_range(address) && *count > 1) {
      map.refuse("address", "needs a range as well, or " + std::to_string(*count) + " hosts have one address");
      return;
    }
    // Entries that turn out wrong count as well: what a file costs is bounded by this, not by how many of its hosts are
    // right.
    if (*count > hosts_max - hosts_named_) {
      map.refuse("name", "brings the hosts to more than " + std::to_string(hosts_max));
      return;
    }
    hosts_named_ += *count;
    const auto names = expand_ranges(name, hosts_max), addresses = expand_ranges(address, hosts_max);
    for (std::size_t i = 0; i < names->size(); ++i) {
      if (!add_host(map, like, (*names)[i], (*addresses)[i])) return;
    }
  }

  bool add_host(MapReader& map, topology::Host host, const std::string& name, const std::string& address) {
    host.name = name;
    if (!is_name(name)) {
      map.refuse("name", shown(name) + " " + name_rule);
      return false;
    }
    auto parsed = parse_address(address);
    if (!parsed) {
      map.refuse("address", shown(address) + " " + parsed.error().why);
      return false;
    }
    host.address = std::move(*parsed);
    if (!hosts_.add(name, map.at("name"), findings_)) return false;
    const auto [first, fresh] = addresses_.emplace(lower_case(host.address.text()), name);
    if (!fresh) {
      map.refuse("address", "hosts \"" + first->second + "\" and \"" + name + "\" both have " + host.address.text());
      return false;
    }
    model_.hosts.push_back(std::move(host));
    host_places_.push_back(map.at());
    return true;
  }

  void root_and_standby(MapReader& top) {
    std::string name;
    top.required_text("root", name);
    if (!name.empty()) {
      const auto found = hosts_.find(name, top.at("root"), "root", findings_);
      if (found) model_.root = HostIndex{static_cast<std::uint32_t>(*found)};
    }
    const std::vector<YamlNode>& items = top.list("standby");
    if (items.size() > standby_max) top.refuse("standby", "more than " + std::to_string(standby_max) + " entries");
    if (items.size() > standby_max) return;
    NameTable seen("standby");
    for (const YamlNode& item : items) {
      if (item.kind != YamlNode::Kind::scalar) {
        findings_.add(item.at, "standby: must be a list of host names");
        continue;
      }
      const auto found = hosts_.find(item.text, item.at, "standby", findings_);
      if (!found || !seen.add(item.text, item.at, findings_)) continue;
      if (item.text == name) findings_.add(item.at, "standby: \"" + name + "\" is the root");
      model_.standby.push_back(HostIndex{static_cast<std::uint32_t>(*found)});
    }
  }

  Findings& findings_;
  Model model_;
  NameTable regions_{"region"}, hosts_{"node"};
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> links_;  // line of each
  std::unordered_map<std::string, std::string> addresses_;            // host of each
  std::vector<Position> region_places_, host_places_;
  std::uint64_t hosts_named_ = 0;  // at most hosts_max
};

}  // namespace

LoadedTopology parse_topology(const std::filesystem::path& file, std::string_view text) {
  LoadedTopology out{std::nullopt, std::nullopt, Findings(file.string())};
  const auto document = parse_yaml(text, out.findings);
  if (!document) return out;
  TopologyLoader loader(out.findings);
  Model model = loader.load(*document);
  if (!out.findings.empty()) return out;
  topology::PlanResult result = topology::make_plan(model);
  for (const topology::PlanProblem& problem : result.problems) {
    const bool of_region = problem.subject == topology::PlanProblem::Subject::region;
    out.findings.add(of_region ? loader.region_at(problem.index) : loader.host_at(problem.index), problem.message);
  }
  if (!out.findings.empty()) return out;
  out.model = std::move(model);
  out.plan = std::move(result.plan);
  return out;
}

LoadedTopology load_topology(const std::filesystem::path& file) {
  Findings findings(file.string());
  const auto text = read_yaml_file(file, findings);
  if (!text) return {std::nullopt, std::nullopt, std::move(findings)};
  return parse_topology(file, *text);
}

}  // namespace deltarelay::config
