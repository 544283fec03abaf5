// Whom a listener lets in, and that nobody can keep it from letting in the others.
#include "relay/net/listener.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "relay/net/net_error.hpp"
#include "tests/relay/net/make_crl.hpp"
#include "tests/relay/net/net_world.hpp"
#include "tests/relay/net/raw_client.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::net;
using namespace deltarelay::tests;

namespace {

/// For counters that nobody announces. Bounded by `patience`.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Host {
  explicit Host(ListenerConfig config = {}, TlsPaths paths = {})
      : door(world.environment(mesh), mesh.load(paths.ca.empty() ? mesh.paths("parent", Role::root) : paths), config) {}
  ~Host() { world.stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] bool refuses(Refusal why) {
    return eventually([&] { return door.refused(why) == 1; });
  }
  [[nodiscard]] ConnectResult connect(const std::string& node) {
    ConnectTarget target;
    target.node = "parent";
    target.address = door.address();
    return world.connect(world.environment(mesh), mesh.tls(node), target);
  }
  [[nodiscard]] std::uint16_t port() const { return door.listener->port(); }

  TestMesh mesh;
  NetWorld world;
  Door door;
};

CertificateOrder dated(std::string node, int days_from_now) {
  CertificateOrder out;
  out.node = std::move(node);
  out.valid_days = 1;
  out.valid_from = std::chrono::system_clock::now() + std::chrono::hours(24 * days_from_now);
  return out;
}

}  // namespace

TEST_SUITE("relay/net/listener") {
  TEST_CASE("a client without a certificate is refused and told so") {
    Host host;
    RawClient client(host.port(), std::nullopt);
    CHECK(client.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(host.refuses(Refusal::no_certificate));
  }

  TEST_CASE("a certificate of another authority is refused, whatever it says") {
    Host host;
    const TestMesh impostor;  // the same mesh name, another key
    RawClient client(host.port(), impostor.paths("child"));
    CHECK(client.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(host.refuses(Refusal::unknown_ca));
  }

  TEST_CASE("a certificate of another mesh whose authority is trusted too is refused") {
    const TestMesh other("m2");
    TestMesh mesh;
    TlsPaths paths = mesh.paths("parent", Role::root);
    std::ofstream(paths.ca, std::ios::app) << std::ifstream(other.ca_dir() / "ca.crt").rdbuf();
    NetWorld world;
    Door door(world.environment(mesh), mesh.load(paths));
    RawClient client(door.listener->port(), other.paths("child"));
    CHECK(client.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(eventually([&] { return door.refused(Refusal::wrong_mesh) == 1; }));
    world.stop();
  }

  TEST_CASE("certificates outside their dates are refused with that reason") {
    Host host;
    RawClient old(host.port(), host.mesh.paths(dated("old", -10)));
    CHECK(old.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(host.refuses(Refusal::expired));
    RawClient early(host.port(), host.mesh.paths(dated("early", 1)));
    CHECK(early.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(host.refuses(Refusal::not_yet_valid));
  }

  TEST_CASE("a role that is not let in is refused") {
    Host host;
    RawClient client(host.port(), host.mesh.paths("viewer", Role::observer));
    CHECK(client.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(host.refuses(Refusal::wrong_role));
  }

  TEST_CASE("a revoked certificate is refused after a reload, the others are not") {
    TestMesh mesh;
    TlsPaths paths = mesh.paths("parent", Role::root);
    paths.crl = mesh.node_dir("parent") / "crl.pem";
    make_crl(mesh.ca_dir(), {}, paths.crl);
    const auto tls = mesh.load(paths);
    NetWorld world;
    Door door(world.environment(mesh), tls);
    {
      RawClient before(door.listener->port(), mesh.paths("child"));
      (void)door.wait_for_link(0);
    }
    make_crl(mesh.ca_dir(), {mesh.paths("child").certificate}, paths.crl);
    REQUIRE(tls->reload().has_value());
    RawClient after(door.listener->port(), mesh.paths("child"));
    CHECK(after.read_to_end().category() == boost::asio::error::get_ssl_category());
    CHECK(eventually([&] { return door.refused(Refusal::revoked) == 1; }));
    RawClient other(door.listener->port(), mesh.paths("other"));
    CHECK(door.wait_for_link(1)->peer().node == "other");
    door.links->change([](auto& links) { links.clear(); });
    world.stop();
  }

  TEST_CASE("HTTP, TLS 1.2 and a connection that closes are told apart") {
    Host host;
    RawSocket http(host.port());
    http.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(http.is_ended());
    CHECK(host.refuses(Refusal::not_tls));

    RawClient old(host.port(), host.mesh.paths("child"), true);
    CHECK(old.handshake_error());
    CHECK(host.refuses(Refusal::version_unsupported));

    RawSocket gone(host.port());
    gone.close();
    CHECK(host.refuses(Refusal::closed_in_handshake));
  }

  TEST_CASE("who says nothing, or half a hello, is closed after handshake_within; others are served meanwhile") {
    ListenerConfig config;
    config.handshake_within = 400ms;
    Host host(config);
    RawSocket silent(host.port()), half(host.port());
    half.write(std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
    const ConnectResult child = host.connect("child");
    CHECK_MESSAGE(child.link != nullptr, child.detail);
    CHECK(silent.is_ended());
    CHECK(half.is_ended());
    CHECK(eventually([&] { return host.door.refused(Refusal::handshake_timeout) == 2; }));
    CHECK(host.door.listener->handshakes() == 0);
  }

  TEST_CASE("handshakes beyond the limit are refused at once, and the places come back") {
    ListenerConfig config;
    config.handshakes_max = 2;
    config.handshake_within = 60s;
    Host host(config);
    {
      RawSocket a(host.port()), b(host.port());
      REQUIRE(eventually([&] { return host.door.listener->handshakes() == 2; }));
      RawSocket c(host.port());
      CHECK(c.is_ended());
      CHECK(host.refuses(Refusal::too_many_handshakes));
      a.close();
      b.close();
    }
    REQUIRE(eventually([&] { return host.door.listener->handshakes() == 0; }));
    CHECK(host.connect("child").link != nullptr);
  }

  TEST_CASE("links beyond the limit are refused until one of them ends") {
    ListenerConfig config;
    config.links_max = 1;
    Host host(config);
    const ConnectResult first = host.connect("a");
    REQUIRE(first.link != nullptr);
    Endpoint here, there;
    here.start(first.link);
    there.start(host.door.wait_for_link());
    const ConnectResult second = host.connect("b");
    CHECK(second.link == nullptr);
    CHECK(host.refuses(Refusal::too_many_connections));
    first.link->close("room for others");
    (void)there.wait_for_end();
    (void)here.wait_for_end();
    CHECK(host.connect("c").link != nullptr);
    host.world.stop();
  }

  TEST_CASE("a link that is dropped without a start gives its place back") {
    ListenerConfig config;
    config.links_max = 1;
    Host host(config);
    const ConnectResult first = host.connect("a");
    REQUIRE(first.link != nullptr);
    (void)host.door.wait_for_link();
    host.door.links->change([](auto& links) { links.clear(); });
    ConnectResult second;
    CHECK(eventually([&] {
      second = host.connect("b");
      return second.link != nullptr;
    }));
  }

  TEST_CASE("a taken port and an address that is none are errors of open(), with the reason") {
    Host host;
    ListenerConfig config;
    config.address = "127.0.0.1";
    config.port = host.port();
    const auto taken = Listener::open(host.world.environment(), host.mesh.tls("parent", Role::root), config);
    REQUIRE_FALSE(taken.has_value());
    CHECK(taken.error().code == net_errc::listen_failed);
    CHECK(taken.error().where == "127.0.0.1 port " + std::to_string(host.port()));
    CHECK(taken.error().why.find("in use") != std::string::npos);
    config.address = "localhost";
    const auto name = Listener::open(host.world.environment(), host.mesh.tls("parent", Role::root), config);
    REQUIRE_FALSE(name.has_value());
    CHECK(name.error().code == net_errc::listen_failed);
  }

  TEST_CASE("stop() drops handshakes under way and refuses new connections; links live on") {
    ListenerConfig config;
    config.handshake_within = 60s;
    Host host(config);
    Endpoint here, there;
    const ConnectResult link = host.connect("child");
    REQUIRE(link.link != nullptr);
    here.start(link.link);
    there.start(host.door.wait_for_link());
    RawSocket waiting(host.port());
    REQUIRE(eventually([&] { return host.door.listener->handshakes() == 1; }));
    host.door.listener->stop();
    host.door.listener->stop();
    CHECK(waiting.is_ended());
    CHECK(host.connect("late").refusal == Refusal::connect_failed);
    link.link->send(host.mesh.message(1), Lane::control);
    CHECK(there.wait_for_records(1));
    host.world.stop();
  }
}
