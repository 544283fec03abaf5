// Who a peer is, from its certificate alone.
#include "relay/net/peer_identity.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace deltarelay::relay::net;

TEST_SUITE("relay/net/peer_identity") {
  TEST_CASE("an identity survives its URI") {
    for (const Role role : {Role::root, Role::relay, Role::operator_, Role::observer}) {
      const PeerIdentity identity{"prod-llm70b", role, "hel_01.eu"};
      const auto parsed = parse_identity_uri(identity.uri());
      REQUIRE(parsed.has_value());
      CHECK(*parsed == identity);
      CHECK(role_from(to_string(role)) == role);
    }
    CHECK(PeerIdentity{"m", Role::operator_, "n"}.uri() == "deltarelay://m/operator/n");
  }

  TEST_CASE("anything but exactly one mesh, role and node is refused") {
    for (const char* uri :
         {"", "deltarelay://", "deltarelay://m", "deltarelay://m/relay", "deltarelay://m/relay/",
          "deltarelay:///relay/n", "deltarelay://m//n", "deltarelay://m/relay/n/", "deltarelay://m/relay/n/x",
          "deltarelay://m/Relay/n", "deltarelay://m/admin/n", "Deltarelay://m/relay/n", "https://m/relay/n",
          " deltarelay://m/relay/n", "deltarelay://m/relay/n ", "deltarelay://m/relay/n?x", "deltarelay://m/relay/%6e",
          "deltarelay://u@m/relay/n"}) {
      CAPTURE(uri);
      CHECK_FALSE(parse_identity_uri(uri).has_value());
    }
  }

  TEST_CASE("names are letters, digits and . _ - of at most 63, not led by a sign") {
    for (const char* good : {"a", "7", "A-b_c.d", "rollout-127"}) {
      CAPTURE(good);
      CHECK(is_valid_name(good));
    }
    CHECK(is_valid_name(std::string(63, 'x')));
    for (const char* bad : {"", ".", "-a", "_a", "a b", "a/b", "a:b", "a,b", "a\n", "\xc3\xa4"}) {
      CAPTURE(bad);
      CHECK_FALSE(is_valid_name(bad));
    }
    CHECK_FALSE(is_valid_name(std::string(64, 'x')));
    CHECK_FALSE(is_valid_name(std::string_view("a\0b", 3)));
  }

  TEST_CASE("every reason of refusal has a code of its own") {
    std::set<std::string_view> codes;
    for (std::size_t i = 0; i < refusal_count; ++i) codes.insert(code(static_cast<Refusal>(i)));
    CHECK(codes.size() == refusal_count);
    CHECK(codes.count("unknown") == 0);
  }
}
