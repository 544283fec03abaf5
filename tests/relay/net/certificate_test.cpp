// Certificates of a mesh: made, read back, and refused when they are not what they say.
#include "relay/net/certificate.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "codec/signature.hpp"
#include "relay/net/net_error.hpp"
#include "tests/relay/net/temporary_directory.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::net;
using namespace deltarelay::tests;
namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

unsigned mode(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

CertificateOrder order(std::string node, Role role = Role::relay) {
  CertificateOrder out;
  out.node = std::move(node);
  out.role = role;
  return out;
}

}  // namespace

TEST_SUITE("relay/net/certificate") {
  TEST_CASE("init_ca makes an authority that names its mesh, and a content key; private keys are private") {
    const TemporaryDirectory dir;
    const fs::path ca = dir.path() / "new" / "ca";
    REQUIRE(init_ca(ca, "prod-llm70b").has_value());
    CHECK(mode(ca / "ca.key") == 0600);
    CHECK(mode(ca / "content.key") == 0600);
    const auto info = inspect(ca / "ca.crt");
    REQUIRE(info.has_value());
    CHECK(info->is_ca);
    CHECK(info->mesh_of_ca == "prod-llm70b");
    CHECK(info->issuer == info->subject);
    CHECK_FALSE(info->identity.has_value());
    CHECK(codec::ContentSigner::load(ca / "content.key").has_value());
    CHECK(codec::ContentVerifier::load(ca / "content.pub").has_value());
  }

  TEST_CASE("init_ca overwrites none of its files and leaves nothing half done") {
    for (const char* name : {"ca.key", "ca.crt", "content.key", "content.pub"}) {
      CAPTURE(name);
      const TemporaryDirectory dir;
      write(dir.path() / name, "precious");
      const auto made = init_ca(dir.path(), "m1");
      REQUIRE_FALSE(made.has_value());
      CHECK(made.error().code == net_errc::already_exists);
      CHECK(made.error().where == (dir.path() / name).string());
      CHECK(content(dir.path() / name) == "precious");
      CHECK(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()) == 1);
    }
  }

  TEST_CASE("names that could not stand in a URI or path are refused") {
    const TemporaryDirectory dir;
    for (const char* name : {"", "a b", "../x", "a/b", "-x"}) {
      CAPTURE(name);
      const auto made = init_ca(dir.path() / "ca", name);
      REQUIRE_FALSE(made.has_value());
      CHECK(made.error().code == net_errc::name_invalid);
    }
    REQUIRE(init_ca(dir.path() / "ca", "m1").has_value());
    const auto issued = issue(dir.path() / "ca", order("a/b"), dir.path() / "out");
    REQUIRE_FALSE(issued.has_value());
    CHECK(issued.error().code == net_errc::name_invalid);
  }

  TEST_CASE("an issued certificate says which node of which mesh it is for, and for how long") {
    const TemporaryDirectory dir;
    REQUIRE(init_ca(dir.path() / "ca", "m1").has_value());
    CertificateOrder wanted = order("hel-01", Role::root);
    wanted.valid_days = 30;
    REQUIRE(issue(dir.path() / "ca", wanted, dir.path() / "hel-01").has_value());
    const auto info = inspect(dir.path() / "hel-01" / "node.crt");
    REQUIRE(info.has_value());
    REQUIRE(info->identity.has_value());
    CHECK(*info->identity == PeerIdentity{"m1", Role::root, "hel-01"});
    CHECK(info->dns_names == std::vector<std::string>{"hel-01"});
    CHECK(info->issuer == inspect(dir.path() / "ca" / "ca.crt")->subject);
    CHECK_FALSE(info->is_ca);
    CHECK(info->sha256.size() == 64);
    CHECK(info->valid_until - info->valid_from == std::chrono::hours(24 * 30));
    CHECK(info->valid_from < std::chrono::system_clock::now());
    CHECK(mode(dir.path() / "hel-01" / "node.key") == 0600);
    CHECK(content(dir.path() / "hel-01" / "ca.crt") == content(dir.path() / "ca" / "ca.crt"));
    CHECK(content(dir.path() / "hel-01" / "content.pub") == content(dir.path() / "ca" / "content.pub"));
  }

  TEST_CASE("no two certificates have one serial number") {
    const TemporaryDirectory dir;
    REQUIRE(init_ca(dir.path() / "ca", "m1").has_value());
    REQUIRE(issue(dir.path() / "ca", order("a"), dir.path() / "a").has_value());
    REQUIRE(issue(dir.path() / "ca", order("b"), dir.path() / "b").has_value());
    CHECK(inspect(dir.path() / "a" / "node.crt")->serial != inspect(dir.path() / "b" / "node.crt")->serial);
  }

  TEST_CASE("issue overwrites nothing, and takes its files away again when it fails") {
    const TemporaryDirectory dir;
    REQUIRE(init_ca(dir.path() / "ca", "m1").has_value());
    REQUIRE(init_ca(dir.path() / "other", "m1").has_value());
    REQUIRE(issue(dir.path() / "ca", order("a"), dir.path() / "a").has_value());
    const std::string key = content(dir.path() / "a" / "node.key");
    const auto again = issue(dir.path() / "ca", order("a"), dir.path() / "a");
    REQUIRE_FALSE(again.has_value());
    CHECK(again.error().code == net_errc::already_exists);
    CHECK(content(dir.path() / "a" / "node.key") == key);

    // The directory belongs to a node of another authority, whose files must stay.
    write(dir.path() / "b" / "ca.crt", content(dir.path() / "other" / "ca.crt"));
    const auto mixed = issue(dir.path() / "ca", order("b"), dir.path() / "b");
    REQUIRE_FALSE(mixed.has_value());
    CHECK(mixed.error().code == net_errc::already_exists);
    CHECK(std::distance(fs::directory_iterator(dir.path() / "b"), fs::directory_iterator()) == 1);
  }

  TEST_CASE("issue refuses an authority whose files do not belong together, and odd validity") {
    const TemporaryDirectory dir;
    REQUIRE(init_ca(dir.path() / "ca", "m1").has_value());
    REQUIRE(init_ca(dir.path() / "other", "m1").has_value());
    write(dir.path() / "mixed" / "ca.crt", content(dir.path() / "ca" / "ca.crt"));
    write(dir.path() / "mixed" / "ca.key", content(dir.path() / "other" / "ca.key"));
    CHECK(issue(dir.path() / "mixed", order("a"), dir.path() / "a").error().code == net_errc::key_mismatch);
    CHECK(issue(dir.path() / "none", order("a"), dir.path() / "a").error().code == net_errc::file_unreadable);
    for (const int days : {0, -1, 100'000}) {
      CertificateOrder odd = order("a");
      odd.valid_days = days;
      CHECK(issue(dir.path() / "ca", odd, dir.path() / "a").error().code == net_errc::value_invalid);
    }
    CHECK_FALSE(fs::exists(dir.path() / "a"));
  }

  TEST_CASE("inspect tells a missing file from one that is no certificate") {
    const TemporaryDirectory dir;
    CHECK(inspect(dir.path() / "none.crt").error().code == net_errc::file_unreadable);
    write(dir.path() / "odd.crt", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
    CHECK(inspect(dir.path() / "odd.crt").error().code == net_errc::certificate_invalid);
    write(dir.path() / "empty.crt", "");
    CHECK(inspect(dir.path() / "empty.crt").error().code == net_errc::certificate_invalid);
  }
}
