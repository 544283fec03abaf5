// A whole block sync from one HostStore to another, without the links and the core between them.
#pragma once

#include <doctest/doctest.h>

#include "relay/shell/sync_store.hpp"
#include "tests/relay/shell/host_bench.hpp"

namespace deltarelay::relay::testing {

inline std::vector<codec::Digest> all_digests(const HostStore& host) {
  const auto digests = sync_digests(host);
  REQUIRE(digests);
  return *digests;
}

/// Manifest, table, files and blocks; the version that `to` is at then.
inline CommitSaved sync(HostStore& from, HostStore& to, SyncReceiver& receiver) {
  const ImageState state = image_state_of(from.record());
  const auto failed = receiver.prepare(PrepareSync{state.layout_record, state.end_record});
  if (failed) FAIL(failed->text);
  REQUIRE(std::holds_alternative<SyncPrepared>(receiver.begin(never)));
  CHECK_FALSE(receiver.store_digests(StoreSyncDigests{0, all_digests(from)}));
  const auto compared = receiver.compare();
  REQUIRE(compared);
  REQUIRE(std::holds_alternative<SyncCompared>(*compared));
  const std::vector<std::uint64_t>& missing = std::get<SyncCompared>(*compared).missing;
  const auto end = codec::EndPayload::decode(state.end_record->payload());
  REQUIRE(end.has_value());
  for (const codec::CompanionFile& named : end->companions)
    CHECK(receiver.apply_file(ApplySyncFile{read_sync_file(from, named)->file_payload}).empty());
  const ServedBlocks served = read_sync_blocks(from, missing);
  CHECK(served.unavailable.empty());
  for (const SyncBlocks& message : served.messages)
    CHECK(apply_sync_blocks(to, ApplySyncBlocks{message.frame_payload, missing, false}).refused.empty());
  REQUIRE(receiver.files_complete());
  return receiver.save(SaveSynced{state.version});
}

}  // namespace deltarelay::relay::testing
