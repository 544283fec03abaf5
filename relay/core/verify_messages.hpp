// The two link messages of `relayctl verify`, and their bytes. A peer of an older release skips both.
//
// Part of messages.hpp, which is what others include. encode: put(); decode: get(), which leaves its errors in the
// reader.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/bytes.hpp"
#include "relay/core/verify_result.hpp"

namespace deltarelay::relay {

/// Down: compare your image with your ledger, and ask your children.
struct VerifyOrder {
  std::uint64_t round = 0;  ///< never 0
  bool deep = false;        ///< read every byte
  friend bool operator==(const VerifyOrder&, const VerifyOrder&) = default;
};

/// Up: news of nodes of the sender's subtree.
struct VerifyResults {
  std::uint64_t round = 0;
  std::vector<VerifyResult> results;
  friend bool operator==(const VerifyResults&, const VerifyResults&) = default;
};

inline constexpr std::size_t verify_results_max = 256;

void put(codec::ByteWriter& out, const VerifyOrder& message);
void put(codec::ByteWriter& out, const VerifyResults& message);
void get(codec::ByteReader& in, VerifyOrder& message);
void get(codec::ByteReader& in, VerifyResults& message);

}  // namespace deltarelay::relay
