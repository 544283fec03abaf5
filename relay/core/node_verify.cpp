// `relayctl verify`: the question goes down the tree, the answers come up; see verify_round.hpp.
#include <fmt/format.h>

#include "relay/core/node.hpp"

namespace deltarelay::relay {

void Node::begin_verify(const VerifyOrder& order) {
  verify_.begin(order, reports_, now_, out_);
  for (const auto& [link, child] : children_)
    if (child.phase() != ChildSession::Phase::greeting) out_.push_back(SendMessage{link, order});
}

void Node::on(const VerifyRequested& event) {
  if (!verify_.over(reports_, now_)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now_ - verify_.began()).count();
    out_.push_back(Answer{event.request, Version{}, "VERIFY_RUNS",
                          fmt::format("another verification, begun {} s ago, is under way", seconds)});
    return;
  }
  verify_request_ = event.request;
  VerifyOrder order;
  order.round = std::max<std::uint64_t>(1, config_.boot_id + ++verifies_asked_);
  order.deep = event.deep;
  begin_verify(order);
}

void Node::message(LinkId link, const VerifyOrder& order) {
  if (!is_parent(link) || parent_phase_ != ParentPhase::attached) return;
  // A parent that was restarted did not know the round when our answers came to it, and asks again once it does.
  if (verify_.order().round == order.round) return verify_.mark_all();
  if (verify_request_)
    out_.push_back(Answer{*std::exchange(verify_request_, std::nullopt), Version{}, "VERIFY_REPLACED",
                          fmt::format("one that was begun above, and that {} passed on, has replaced it", parent_)});
  begin_verify(order);
}

void Node::message(LinkId link, const VerifyResults& results) {
  if (children_.count(link) != 0) verify_.merge(results, reports_, now_);
}

void Node::on(const ImageVerified& event) {
  verify_.on(event, now_);
}
void Node::on(const VerifyProgress& event) {
  verify_.on(event, now_);
}

void Node::ask_to_verify(LinkId child) {
  // One that was restarted knows nothing of the round; one that knows it only answers once more.
  if (!verify_.over(reports_, now_)) out_.push_back(SendMessage{child, verify_.order()});
}

VerifyObstacle Node::in_the_way_of_verify() const {
  if (image_open_ && codec::raw(image_.version) != 0 && refit_.phase() == RefitNode::Phase::idle && !sync_.running())
    return {};
  const NodeRecord record = describe();
  std::string text = state_name(record.state);
  if (image_open_ && codec::raw(image_.version) == 0) text += ", of no version yet";
  if (codec::raw(record.receiving) != 0) text += fmt::format(" v{}", codec::raw(record.receiving));
  if (!record.reason_code.empty()) text += fmt::format(": {}: {}", record.reason_code, record.reason_text);
  return {std::move(text), !image_open_ && !image_error_code_.empty()};
}

void Node::step_verify() {
  if (!verify_.begun()) return;
  if (verify_.working()) verify_.step(in_the_way_of_verify(), image_.version, now_, out_);
  if (parent_phase_ != ParentPhase::attached || verify_request_) return;  // what was asked here is nobody's above
  while (verify_.pending())
    out_.push_back(SendMessage{*parent_link_, VerifyResults{verify_.order().round, verify_.take(verify_results_max)}});
}

void Node::conclude_verify() {
  if (!verify_request_ || !verify_.over(reports_, now_)) return;
  verify_.close(now_);
  out_.push_back(Answer{*std::exchange(verify_request_, std::nullopt), Version{}, "", ""});
}

}  // namespace deltarelay::relay
