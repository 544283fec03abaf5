#include "relay/core/verify_messages.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>

namespace deltarelay::relay {
namespace {

using codec::ByteReader;
using codec::ByteWriter;

constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t tensor_bytes_max = 512;
constexpr std::size_t text_bytes_max = 1024;
constexpr std::size_t result_bytes_min = 61;
constexpr std::size_t damaged_bytes_min = 12;

/// What an operator reads may be cut, never refused.
std::string_view cut(std::string_view text, std::size_t max) {
  return text.substr(0, max);
}

void put_result(ByteWriter& out, const VerifyResult& result) {
  out.sized_string(cut(result.node, name_bytes_max));
  out.u64(result.serial);
  out.u8(static_cast<std::uint8_t>(result.state));
  out.u64(codec::raw(result.version));
  out.u64(result.checked_bytes);
  out.u64(result.total_bytes);
  out.u64(result.damaged_blocks);
  out.u64(result.milliseconds);
  const std::size_t named = std::min(result.damaged.size(), damaged_named_max);
  out.u32(static_cast<std::uint32_t>(named));
  for (std::size_t i = 0; i < named; ++i) {
    out.sized_string(cut(result.damaged[i].tensor, tensor_bytes_max));
    out.u64(result.damaged[i].block);
  }
  out.sized_string(cut(result.text, text_bytes_max));
}

void get_result(ByteReader& in, VerifyResult& result) {
  result.node = in.sized_string(name_bytes_max);
  result.serial = in.u64();
  const std::uint8_t state = in.u8();
  in.require(state > static_cast<std::uint8_t>(VerifyState::asked) &&
             state <= static_cast<std::uint8_t>(VerifyState::busy));
  result.state = static_cast<VerifyState>(state);
  result.version = codec::Version{in.u64()};
  result.checked_bytes = in.u64();
  result.total_bytes = in.u64();
  result.damaged_blocks = in.u64();
  result.milliseconds = in.u64();
  const std::size_t named = in.count(damaged_bytes_min, damaged_named_max);
  result.damaged.resize(named);
  for (DamagedBlock& damaged : result.damaged) {
    damaged.tensor = in.sized_string(tensor_bytes_max);
    damaged.block = in.u64();
  }
  result.text = in.sized_string(text_bytes_max);
  // An image is proved or it is not: what says both says nothing.
  in.require(result.state != VerifyState::ok || (result.damaged_blocks == 0 && result.damaged.empty()));
}

}  // namespace

void put(ByteWriter& out, const VerifyOrder& message) {
  assert(message.round != 0);
  out.u64(message.round);
  out.u8(message.deep ? 1 : 0);
}

void put(ByteWriter& out, const VerifyResults& message) {
  assert(message.round != 0 && message.results.size() <= verify_results_max);
  out.u64(message.round);
  out.u32(static_cast<std::uint32_t>(message.results.size()));
  for (const VerifyResult& result : message.results) put_result(out, result);
}

void get(ByteReader& in, VerifyOrder& message) {
  message.round = in.u64();
  const std::uint8_t deep = in.u8();
  in.require(message.round != 0 && deep <= 1);
  message.deep = deep == 1;
}

void get(ByteReader& in, VerifyResults& message) {
  message.round = in.u64();
  in.require(message.round != 0);
  const std::size_t count = in.count(result_bytes_min, verify_results_max);
  message.results.resize(count);
  for (VerifyResult& result : message.results) get_result(in, result);
}

}  // namespace deltarelay::relay
