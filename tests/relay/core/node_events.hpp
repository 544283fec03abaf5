// Hand-made events for one node, and what its actions hold.
#pragma once

#include <doctest/doctest.h>

#include "relay/core/node.hpp"

namespace deltarelay::relay {

inline Node relay_node() {
  NodeConfig config;
  config.name = "leaf";
  config.rank = 2;
  config.candidates = {{"mid", "10.0.0.1:7443"}};
  return Node(config);
}

template <class T>
const T* find(const Actions& actions) {
  for (const Action& action : actions)
    if (const T* found = std::get_if<T>(&action)) return found;
  return nullptr;
}

inline const Hello* hello_in(const Actions& actions) {
  for (const Action& action : actions)
    if (const auto* sent = std::get_if<SendMessage>(&action))
      if (const auto* hello = std::get_if<Hello>(&sent->message)) return hello;
  return nullptr;
}

inline ImageState image_at(std::uint64_t version) {
  ImageState image;
  image.version = Version{version};
  image.image.bytes.fill(std::byte{5});
  return image;
}

inline std::vector<std::byte> record_of(Version version, codec::RecordType type) {
  codec::RecordHeader header;
  header.type = type;
  header.version = version;
  return codec::seal_record(header, {}, nullptr)->bytes;
}

using codec::RecordType;

inline FrameReceived sealed(std::uint64_t version, std::uint64_t sequence, RecordType type, codec::Bytes payload = {}) {
  codec::RecordHeader header;
  header.type = type;
  header.version = Version{version};
  header.sequence = Sequence{sequence};
  return {LinkId{1}, codec::seal_record(header, payload, nullptr)};
}

inline FrameReceived begin_of(std::uint64_t version, std::uint64_t base) {
  codec::BeginPayload begin;
  begin.base = Version{base};
  begin.base_image = image_at(base).image;
  begin.block_bytes = 1u << 20;
  return sealed(version, 0, RecordType::begin, begin.encode());
}

inline void attach(Node& node, Instant& now, Mode mode) {
  Actions dialled;
  for (int i = 0; i < 10 && find<ConnectTo>(dialled) == nullptr; ++i)
    dialled = node.handle(Tick{}, now += std::chrono::seconds(1));
  REQUIRE(find<ConnectTo>(dialled) != nullptr);
  (void)node.handle(LinkUp{LinkId{1}, "mid", true}, now);
  Welcome welcome;
  welcome.node = "mid";
  welcome.rank = 1;
  welcome.mode = mode;
  (void)node.handle(MessageArrived{LinkId{1}, welcome}, now);
}

}  // namespace deltarelay::relay
