// A host's state directory: what a start counts, with and without the ledger of the one before.
#include "relay/shell/host_store.hpp"

#include <doctest/doctest.h>

#include "tests/relay/shell/host_bench.hpp"

namespace deltarelay::relay::testing {
namespace {

struct Start {
  std::uint64_t boot_count = 0;
  Epoch epoch{};
};

Start start_at(const Mesh& mesh, const std::string& name, std::uint64_t clock, bool is_root) {
  auto store = HostStore::open(mesh.options(name, is_root, clock), mesh.signer->verifier(),
                               is_root ? mesh.signer : std::nullopt);
  REQUIRE(store.has_value());
  return {(*store)->record().boot_count, (*store)->record().epoch};
}

}  // namespace

TEST_SUITE("relay/shell/host_store") {
  TEST_CASE("a life whose ledger was lost is followed by one with higher numbers, whatever the first one counted") {
    const Mesh mesh;
    constexpr std::uint64_t clock = 1'700'000'000'000;
    Start last;
    for (std::uint64_t start = 0; start < 5; ++start) last = start_at(mesh, "root", clock + start, true);
    CHECK(last.boot_count == clock + 5);
    CHECK(last.epoch == Epoch{clock + 5});
    std::filesystem::remove_all(mesh.directory.path / "root" / "state");
    const Start next = start_at(mesh, "root", clock + 10, true);  // no start takes less than a millisecond
    CHECK(next.boot_count > last.boot_count);
    CHECK(next.epoch > last.epoch);
  }

  TEST_CASE("a relay has no epoch of its own, and a clock that is far off leaves room for its starts") {
    const Mesh mesh;
    const Start first = start_at(mesh, "relay", UINT64_MAX, false);
    CHECK(first.epoch == Epoch{});
    CHECK(first.boot_count > 0);
    CHECK(first_of_boot(first.boot_count) > first.boot_count);
    CHECK(first_of_boot(first.boot_count + 1'000'000) > first_of_boot(first.boot_count));
    CHECK(start_at(mesh, "relay", 0, false).boot_count == first.boot_count + 1);
  }
}

}  // namespace deltarelay::relay::testing
