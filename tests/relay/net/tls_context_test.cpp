// TLS contexts: what they demand of both sides, and reloading.
#include "relay/net/tls_context.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "relay/net/net_error.hpp"
#include "tests/relay/net/make_crl.hpp"
#include "tests/relay/net/test_mesh.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::net;
using namespace deltarelay::tests;
namespace fs = std::filesystem;

namespace {

codec::Failure failure_of(const TlsPaths& paths) {
  const auto loaded = TlsContext::load(paths);
  REQUIRE_FALSE(loaded.has_value());
  return loaded.error();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void replace(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

}  // namespace

TEST_SUITE("relay/net/tls_context") {
  TEST_CASE("a context knows whose it is, of which mesh, and until when") {
    const TestMesh mesh;
    const auto context = mesh.tls("hel-01", Role::root);
    CHECK(context->identity() == PeerIdentity{"m1", Role::root, "hel-01"});
    CHECK(context->mesh_id() == mesh.id());
    CHECK(context->expires() == inspect(mesh.node_dir("hel-01") / "node.crt")->valid_until);
  }

  TEST_CASE("mesh ids tell meshes of one name apart, and names under one authority") {
    const TestMesh a("m1"), b("m1");
    CHECK(a.id() != b.id());
    const fs::path ca = a.ca_dir() / "ca.crt";
    CHECK(mesh_id_of(ca, "m1").value() == a.id());
    CHECK(mesh_id_of(ca, "m2").value() != a.id());
    CHECK(mesh_id_of(a.ca_dir() / "none", "m1").error().code == net_errc::file_unreadable);
  }

  TEST_CASE("each file that is missing or odd is named") {
    const TestMesh mesh;
    const TlsPaths good = mesh.paths("a");
    const fs::path odd = mesh.node_dir("a") / "odd";
    write(odd, "-----BEGIN NONSENSE-----\n");
    struct {
      fs::path TlsPaths::*file;
      net_errc when_odd;
    } const files[] = {{&TlsPaths::certificate, net_errc::certificate_invalid},
                       {&TlsPaths::key, net_errc::key_invalid},
                       {&TlsPaths::ca, net_errc::certificate_invalid},
                       {&TlsPaths::crl, net_errc::crl_invalid}};
    for (const auto& file : files) {
      TlsPaths paths = good;
      paths.*file.file = mesh.node_dir("a") / "none";
      CHECK(failure_of(paths).code == net_errc::file_unreadable);
      CHECK(failure_of(paths).where == (mesh.node_dir("a") / "none").string());
      paths.*file.file = odd;
      CHECK(failure_of(paths).code == file.when_odd);
      CHECK(failure_of(paths).where == odd.string());
    }
  }

  TEST_CASE("files that do not belong together are refused") {
    const TestMesh mesh, other;
    TlsPaths paths = mesh.paths("a");
    paths.key = mesh.paths("b").key;
    CHECK(failure_of(paths).code == net_errc::key_mismatch);

    paths = mesh.paths("a");
    paths.ca = other.ca_dir() / "ca.crt";
    CHECK(failure_of(paths).code == net_errc::untrusted);

    // An authority's own certificate names no node.
    paths = mesh.paths("a");
    paths.certificate = mesh.ca_dir() / "ca.crt";
    paths.key = mesh.ca_dir() / "ca.key";
    CHECK(failure_of(paths).code == net_errc::identity_invalid);
  }

  TEST_CASE("a certificate outside its dates loads: its peers refuse it, and the operator sees why") {
    const TestMesh mesh;
    CertificateOrder order;
    order.node = "old";
    order.valid_days = 1;
    order.valid_from = std::chrono::system_clock::now() - std::chrono::hours(24 * 10);
    const auto context = mesh.load(mesh.paths(order));
    CHECK(context->expires() < std::chrono::system_clock::now());
  }

  TEST_CASE("reload takes the new files as a whole, or keeps the old ones and says why") {
    const TestMesh mesh;
    const TlsPaths paths = mesh.paths("a");
    const auto context = mesh.load(paths);
    const auto first = context->current();
    const auto first_end = context->expires();

    CertificateOrder order;
    order.node = "a";
    order.valid_days = 20;
    const fs::path renewed = mesh.node_dir("a-renewed");
    REQUIRE(issue(mesh.ca_dir(), order, renewed).has_value());
    replace(renewed / "node.crt", paths.certificate);  // the key is still the old one
    const auto half = context->reload();
    REQUIRE_FALSE(half.has_value());
    CHECK(half.error().code == net_errc::key_mismatch);
    CHECK(context->current() == first);

    replace(renewed / "node.key", paths.key);
    REQUIRE(context->reload().has_value());
    CHECK(context->current() != first);
    CHECK(context->expires() < first_end);
    CHECK(context->identity().node == "a");
  }

  TEST_CASE("reload refuses a certificate of another node, role or mesh") {
    const TestMesh mesh;
    const TlsPaths paths = mesh.paths("a");
    const auto context = mesh.load(paths);
    const TlsPaths other = mesh.paths("b");
    replace(other.certificate, paths.certificate);
    replace(other.key, paths.key);
    const auto reloaded = context->reload();
    REQUIRE_FALSE(reloaded.has_value());
    CHECK(reloaded.error().code == net_errc::identity_changed);
    CHECK(context->identity().node == "a");
  }

  TEST_CASE("a revocation list is read; one with damage after its first entry is not taken for a shorter one") {
    const TestMesh mesh;
    TlsPaths paths = mesh.paths("a");
    paths.crl = mesh.node_dir("a") / "crl.pem";
    make_crl(mesh.ca_dir(), {mesh.paths("b").certificate}, paths.crl);
    CHECK(TlsContext::load(paths).has_value());
    std::ofstream(paths.crl, std::ios::app) << "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";
    CHECK(failure_of(paths).code == net_errc::crl_invalid);
  }
}
