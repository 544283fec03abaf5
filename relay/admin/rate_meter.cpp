#include "relay/admin/rate_meter.hpp"

#include <algorithm>

namespace deltarelay::relay::admin {

void RateMeter::observe(const std::map<std::string, NodeRecord>& records, Instant now) {
  for (auto it = seen_.begin(); it != seen_.end();)
    it = records.count(it->first) == 0 ? seen_.erase(it) : std::next(it);
  for (const auto& [name, record] : records) {
    const auto [found, is_new] = seen_.try_emplace(name);
    Seen& seen = found->second;
    if (is_new || seen.state != record.state || seen.reachable != record.reachable) {
      seen.state = record.state;
      seen.reachable = record.reachable;
      seen.since = now;
    }
    const bool restarted = !seen.samples.empty() && record.received_bytes < seen.samples.back().received_bytes;
    if (seen.receiving != record.receiving || restarted) seen.samples.clear();
    seen.receiving = record.receiving;
    Sample sample;
    sample.at = now;
    sample.received_bytes = record.received_bytes;
    seen.samples.push_back(sample);
    if (seen.samples.size() > window) seen.samples.pop_front();
  }
}

double RateMeter::bytes_per_second(const std::string& node) const {
  const auto found = seen_.find(node);
  if (found == seen_.end() || codec::raw(found->second.receiving) == 0 || !found->second.reachable) return 0;
  const auto& samples = found->second.samples;
  if (samples.size() < 2) return 0;
  const double seconds = std::chrono::duration<double>(samples.back().at - samples.front().at).count();
  if (seconds <= 0) return 0;
  return static_cast<double>(samples.back().received_bytes - samples.front().received_bytes) / seconds;
}

std::optional<Instant> RateMeter::since(const std::string& node) const {
  const auto found = seen_.find(node);
  if (found == seen_.end()) return std::nullopt;
  return found->second.since;
}

}  // namespace deltarelay::relay::admin
