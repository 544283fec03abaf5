#include "relay/admin/verify_view.hpp"

#include <cassert>

namespace deltarelay::relay::admin {
namespace {

constexpr const char* unreachable = "unreachable";

const char* state_of(VerifyState state) {
  switch (state) {
    case VerifyState::asked:
      return "ASKED";
    case VerifyState::waiting:
      return "WAITING";
    case VerifyState::reading:
      return "READING";
    default:
      return "DONE";
  }
}

const char* result_of(VerifyState state) {
  switch (state) {
    case VerifyState::ok:
      return "ok";
    case VerifyState::damaged:
      return "damaged";
    case VerifyState::failed:
      return "failed";
    case VerifyState::busy:
      return "busy";
    default:
      return "";
  }
}

VerifyRow row_of(const VerifyResult& result) {
  VerifyRow row;
  row.state = state_of(result.state);
  row.result = result_of(result.state);
  row.version = result.version;
  row.checked_bytes = result.checked_bytes;
  row.total_bytes = result.total_bytes;
  row.damaged_blocks = result.damaged_blocks;
  row.seconds = static_cast<double>(result.milliseconds) / 1000;
  row.text = result.text;
  for (const DamagedBlock& damaged : result.damaged) row.damaged.push_back({damaged.tensor, damaged.block});
  return row;
}

/// Of a node that is connected, and gave no answer all the same.
const char* why_silent(const VerifyResult* last) {
  if (last == nullptr) return "it came back when the round was under way or over; ask again";
  if (last->state == VerifyState::asked) return "no answer; a relayd of an older release does not know the question";
  return "it fell silent before it had finished";
}

}  // namespace

VerifyDocument verify_document(const FleetInput& input, const VerifyRound& round, bool over) {
  assert(round.begun());
  VerifyDocument document;
  document.at = input.at;
  document.round = std::to_string(round.order().round);
  document.began = input.at + std::chrono::round<std::chrono::milliseconds>(round.began() - input.now);
  document.deep = round.order().deep;
  document.done = over;
  for (const NodeRow& node : nodes_document(input).nodes) {
    const auto found = round.rows().find(node.name);
    const VerifyResult* last = found == round.rows().end() ? nullptr : &found->second.result;
    VerifyRow row = last == nullptr ? VerifyRow{} : row_of(*last);
    row.node = node.name;
    if (last == nullptr || (over && !last->final())) {
      row.state = row.result = unreachable;
      row.text = node.state == unreachable && node.reason ? node.reason->text : why_silent(last);
    }
    document.nodes.push_back(std::move(row));
  }
  return document;
}

}  // namespace deltarelay::relay::admin
