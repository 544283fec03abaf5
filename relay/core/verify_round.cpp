#include "relay/core/verify_round.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace deltarelay::relay {

bool lost_from_sight(const Reports& reports, const std::string& name) {
  std::string at = name;
  // Records of one moment cannot make a circle, but stale ones might.
  for (std::size_t steps = 0; steps <= reports.others().size(); ++steps) {
    if (at == reports.self().name) return false;
    const auto found = reports.others().find(at);
    if (found == reports.others().end() || !found->second.reachable) return true;
    at = found->second.parent;
  }
  return true;
}

void VerifyRound::begin(const VerifyOrder& order, const Reports& reports, Instant now, Actions& out) {
  if (std::exchange(reading_, false)) out.push_back(StopVerify{});
  order_ = order;
  began_ = waits_since_ = now;
  closed_.reset();
  attempts_of_round_ = 0;
  rows_.clear();
  untold_.clear();
  for (const auto& [name, record] : reports.others()) {
    if (lost_from_sight(reports, name)) continue;
    VerifyResult asked;
    asked.node = name;
    rows_.emplace(name, Row{std::move(asked), now});
  }
  own_ = VerifyResult{};
  own_.node = self_;
  say(VerifyState::waiting, "", now);
}

void VerifyRound::say(VerifyState state, std::string text, Instant now) {
  own_.state = state;
  own_.text = std::move(text);
  own_.serial = ++serial_;
  said_at_ = now;
  rows_[self_] = Row{own_, now};
  untold_.insert(self_);
}

void VerifyRound::step(const VerifyObstacle& in_the_way, Version version, Instant now, Actions& out) {
  if (!working()) return;
  if (reading_) {
    if (in_the_way.text.empty()) return;
    reading_ = false;
    out.push_back(StopVerify{});
    waits_since_ = now;
    own_.checked_bytes = 0;
    if (attempts_of_round_ == attempts_max)
      return say(
          VerifyState::busy,
          fmt::format("its image began to change each of the {} times it was read: {}", attempts_max, in_the_way.text),
          now);
    return say(VerifyState::waiting, in_the_way.text, now);
  }
  if (in_the_way.text.empty()) {
    reading_ = true;
    ++attempts_of_round_;
    own_.version = version;
    out.push_back(VerifyImage{++attempt_, order_.deep});
    return say(VerifyState::reading, "", now);
  }
  if (now - waits_since_ >= patience)
    return say(in_the_way.broken ? VerifyState::failed : VerifyState::busy, in_the_way.text, now);
  if (in_the_way.text != own_.text || now - said_at_ >= waiting_interval)
    say(VerifyState::waiting, in_the_way.text, now);
}

void VerifyRound::on(const VerifyProgress& event, Instant now) {
  if (!reading_ || event.attempt != attempt_) return;
  own_.checked_bytes = event.checked_bytes;
  own_.total_bytes = event.total_bytes;
  say(VerifyState::reading, "", now);
}

void VerifyRound::on(const ImageVerified& event, Instant now) {
  if (!reading_ || event.attempt != attempt_) return;
  reading_ = false;
  own_ = event.result;
  own_.node = self_;
  say(event.result.state, event.result.text, now);
}

void VerifyRound::merge(const VerifyResults& message, const Reports& reports, Instant now) {
  if (message.round != order_.round || closed_) return;
  for (const VerifyResult& result : message.results) {
    if (result.node == self_ || reports.others().count(result.node) == 0) continue;
    Row& row = rows_[result.node];
    if (row.result.serial >= result.serial) continue;
    row = Row{result, now};
    untold_.insert(result.node);
  }
}

void VerifyRound::mark_all() {
  for (const auto& [name, row] : rows_)
    if (row.result.state != VerifyState::asked) untold_.insert(name);
}

std::vector<VerifyResult> VerifyRound::take(std::size_t max) {
  std::vector<VerifyResult> out;
  while (!untold_.empty() && out.size() < max) out.push_back(rows_.at(untold_.extract(untold_.begin()).value()).result);
  return out;
}

bool VerifyRound::settled(const std::string& name, const Row& row, const Reports& reports, Instant now) const {
  if (row.result.final()) return true;
  const Duration silent = now - row.heard;
  return silent > silence_max || (silent > lost_grace && lost_from_sight(reports, name));
}

bool VerifyRound::over(const Reports& reports, Instant now) const {
  if (!begun() || closed_) return true;
  return own_.final() && std::all_of(rows_.begin(), rows_.end(),
                                     [&](const auto& row) { return settled(row.first, row.second, reports, now); });
}

void VerifyRound::close(Instant now) {
  closed_ = now;
  untold_.clear();
}

}  // namespace deltarelay::relay
