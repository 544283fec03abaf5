#include "relay/core/reports.hpp"

namespace deltarelay::relay {
namespace {
bool state_differs(const NodeRecord& a, const NodeRecord& b) {
  return a.state != b.state || a.committed != b.committed || a.receiving != b.receiving || a.reachable != b.reachable ||
         a.reason_code != b.reason_code || a.parent != b.parent;
}
}  // namespace

const char* state_name(NodeState state) noexcept {
  switch (state) {
    case NodeState::starting: return "STARTING";
    case NodeState::idle: return "IDLE";
    case NodeState::syncing: return "SYNCING";
    case NodeState::receiving: return "RECEIVING";
    case NodeState::prepared: return "PREPARED";
    case NodeState::committing: return "COMMITTING";
    case NodeState::failed: return "FAILED";
  }
  return "UNKNOWN";
}

bool Reports::set_self(NodeRecord self) {
  self.report_sequence = self_.report_sequence;
  if (self == self_) return false;
  const bool urgent = state_differs(self, self_);
  self.report_sequence = self_.report_sequence + 1;
  self_ = std::move(self);
  untold_.insert(self_.name);
  return urgent;
}

bool Reports::merge(const std::vector<NodeRecord>& records) {
  bool urgent = false;
  for (const NodeRecord& record : records) {
    if (record.name == self_.name) continue;
    auto found = others_.find(record.name);
    if (found == others_.end()) {
      if (others_.size() >= nodes_max_) continue;
      others_.emplace(record.name, record);
      urgent = true;
    } else {
      if (!record.newer_than(found->second)) continue;
      urgent = urgent || state_differs(record, found->second);
      found->second = record;
    }
    untold_.insert(record.name);
  }
  return urgent;
}

void Reports::lost(const std::string& child, const std::string& why) {
  auto found = others_.find(child);
  if (found == others_.end() || found->second.parent != self_.name) return;
  NodeRecord& record = found->second;
  record.reachable = false;
  record.reason_code = "UNREACHABLE";
  record.reason_text = "link to " + self_.name + " lost: " + why;
  ++record.report_sequence;
  untold_.insert(child);
}

void Reports::mark_all() {
  untold_.insert(self_.name);
  for (const auto& [name, record] : others_) untold_.insert(name);
}

std::vector<NodeRecord> Reports::take(std::size_t max) {
  std::vector<NodeRecord> out;
  while (!untold_.empty() && out.size() < max) {
    const std::string name = *untold_.begin();
    untold_.erase(untold_.begin());
    if (name == self_.name)
      out.push_back(self_);
    else if (auto found = others_.find(name); found != others_.end())
      out.push_back(found->second);
  }
  return out;
}

std::map<std::string, NodeRecord> Reports::all() const {
  std::map<std::string, NodeRecord> out = others_;
  out[self_.name] = self_;
  return out;
}

}  // namespace deltarelay::relay
