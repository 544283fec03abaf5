#include "topology/model.hpp"

namespace deltarelay::topology {

std::string Address::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

const Link* Model::link_between(RegionIndex from, RegionIndex to) const noexcept {
  const Link* other_way = nullptr;
  for (const Link& link : links) {
    if (link.from == from && link.to == to) return &link;
    if (link.from == to && link.to == from) other_way = &link;
  }
  return other_way;
}

}  // namespace deltarelay::topology
