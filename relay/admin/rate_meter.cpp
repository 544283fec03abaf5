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
    const bool restarted = !seen.samples.empty() && (record.received_bytes < seen.samples.back().received_bytes ||
                                                     record.sync_blocks_done < seen.samples.back().sync_blocks_done);
    const bool another =
        seen.receiving != record.receiving || seen.sync_blocks_total != record.sync_blocks_total || restarted;
    if (another) seen.samples.clear();
    seen.receiving = record.receiving;
    seen.sync_blocks_total = record.sync_blocks_total;
    seen.samples.push_back({now, record.received_bytes, record.sync_blocks_done});
    if (seen.samples.size() > window) seen.samples.pop_front();
  }
}

namespace {

/// Of a counter that only grows.
template <class Samples, class Counter>
double per_second(const Samples& samples, Counter counter) {
  if (samples.size() < 2) return 0;
  const double seconds = std::chrono::duration<double>(samples.back().at - samples.front().at).count();
  if (seconds <= 0) return 0;
  return static_cast<double>(samples.back().*counter - samples.front().*counter) / seconds;
}

}  // namespace

const RateMeter::Seen* RateMeter::find(const NodeRecord& now_known) const {
  const auto found = seen_.find(now_known.name);
  if (found == seen_.end()) return nullptr;
  const Seen& seen = found->second;
  const bool same = seen.receiving == now_known.receiving && seen.sync_blocks_total == now_known.sync_blocks_total;
  return same && seen.reachable && now_known.reachable ? &seen : nullptr;
}

double RateMeter::bytes_per_second(const NodeRecord& now_known) const {
  const Seen* seen = codec::raw(now_known.receiving) == 0 ? nullptr : find(now_known);
  return seen == nullptr ? 0 : per_second(seen->samples, &Sample::received_bytes);
}

double RateMeter::sync_blocks_per_second(const NodeRecord& now_known) const {
  const Seen* seen = find(now_known);
  return seen == nullptr ? 0 : per_second(seen->samples, &Sample::sync_blocks_done);
}

std::optional<Instant> RateMeter::since(const NodeRecord& now_known) const {
  const auto found = seen_.find(now_known.name);
  if (found == seen_.end()) return std::nullopt;
  const Seen& seen = found->second;
  if (seen.state != now_known.state || seen.reachable != now_known.reachable) return std::nullopt;
  return seen.since;
}

}  // namespace deltarelay::relay::admin
