// What a dialler is told about each way in which a node cannot be reached.
#include "relay/net/connector.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "relay/net/resolve.hpp"
#include "tests/relay/net/net_world.hpp"
#include "tests/relay/net/raw_client.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::net;
using namespace deltarelay::tests;
using boost::asio::ip::tcp;

namespace {

struct Dialler {
  ~Dialler() { world.stop(); }
  [[nodiscard]] ConnectResult dial(const std::string& address, const std::string& node = "parent",
                                   ConnectConfig config = {}) {
    return dial_as(mesh.tls("child"), address, node, config);
  }
  [[nodiscard]] ConnectResult dial_as(std::shared_ptr<TlsContext> tls, const std::string& address,
                                      const std::string& node = "parent", ConnectConfig config = {}) {
    ConnectTarget target;
    target.node = node;
    target.address = address;
    return world.connect(world.environment(mesh), std::move(tls), target, config);
  }

  TestMesh mesh;
  NetWorld world;
};

/// A TCP server on a thread: what it does with its one connection is the test's.
class Server {
 public:
  template <class Serve>
  explicit Server(Serve serve)
      : thread_([this, serve] {
          tcp::socket socket = acceptor_.accept();
          serve(socket);
        }) {}
  ~Server() { thread_.join(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

 private:
  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)};
  std::thread thread_;
};

void read_to_end(tcp::socket& socket) {
  std::array<char, 4096> bytes{};
  boost::system::error_code failed;
  while (!failed) socket.read_some(boost::asio::buffer(bytes), failed);
}

}  // namespace

TEST_SUITE("relay/net/connector") {
  TEST_CASE("addresses are HOST:PORT or [V6]:PORT") {
    CHECK(parse_host_port("hel-01.eu:7443") == HostPort{"hel-01.eu", 7443});
    CHECK(parse_host_port("127.0.0.1:1") == HostPort{"127.0.0.1", 1});
    CHECK(parse_host_port("[::1]:65535") == HostPort{"::1", 65535});
    for (const char* bad : {"", "host", "host:", ":7443", "host:0", "host:65536", "host:-1", "host:+1", "host:7443 ",
                            "host: 7443", "host:0x1", "::1:7443", "[::1]", "[]:7443", "[::1:7443", "::1]:7443"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_host_port(bad).has_value());
    }
    Dialler dialler;
    const ConnectResult result = dialler.dial("parent");
    CHECK(code(result.refusal) == "resolve_failed");
    CHECK(result.detail == "\"parent\" is not HOST:PORT");
  }

  TEST_CASE("a name is resolved and each of its addresses is tried") {
    Dialler dialler;
    Door door(dialler.world.environment(dialler.mesh), dialler.mesh.tls("parent", Role::root));
    // localhost may be ::1 first, where nobody listens.
    const ConnectResult result = dialler.dial("localhost:" + std::to_string(door.listener->port()));
    REQUIRE_MESSAGE(result.link != nullptr, result.detail);
    CHECK(result.link->remote_address() == door.address());
  }

  TEST_CASE("nobody listens: connect_failed; nobody answers: connect_timeout") {
    Dialler dialler;
    boost::asio::io_context io;
    tcp::acceptor deaf(io);
    deaf.open(tcp::v4());
    deaf.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
    const std::string address = "127.0.0.1:" + std::to_string(deaf.local_endpoint().port());
    const ConnectResult failed = dialler.dial(address);
    CHECK(code(failed.refusal) == "connect_failed");
    CHECK(failed.detail == address + ": Connection refused");

    // A backlog that is full: the kernel drops further SYNs.
    deaf.listen(0);
    std::vector<tcp::socket> fillers;
    for (int i = 0; i < 4; ++i) {
      fillers.emplace_back(io).open(tcp::v4());
      fillers.back().async_connect(deaf.local_endpoint(), [](boost::system::error_code) {});  // begun, never awaited
    }
    ConnectConfig config;
    config.connect_within = 200ms;
    const ConnectResult late = dialler.dial(address, "parent", config);
    CHECK(code(late.refusal) == "connect_timeout");
  }

  TEST_CASE("a server that is silent, closes, or speaks plain text is told as such") {
    Dialler dialler;
    ConnectConfig config;
    config.handshake_within = 200ms;
    {
      Server silent(read_to_end);
      CHECK(code(dialler.dial(silent.address(), "parent", config).refusal) == "handshake_timeout");
    }
    {
      Server closes([](tcp::socket& socket) { socket.close(); });
      CHECK(code(dialler.dial(closes.address()).refusal) == "closed_in_handshake");
    }
    Server plain([](tcp::socket& socket) {
      boost::asio::write(socket, boost::asio::buffer(std::string_view("HTTP/1.1 400 Bad Request\r\n\r\n")));
      read_to_end(socket);
    });
    CHECK(code(dialler.dial(plain.address()).refusal) == "not_tls");
  }

  TEST_CASE("another node at the address is refused, and knows that it was") {
    Dialler dialler;
    Door door(dialler.world.environment(dialler.mesh), dialler.mesh.tls("parent", Role::root));
    const ConnectResult result = dialler.dial(door.address(), "grandparent");
    CHECK(result.link == nullptr);
    CHECK(code(result.refusal) == "wrong_name");
    CHECK(result.detail ==
          door.address() + ": the certificate is of deltarelay://m1/root/parent, dialled was \"grandparent\"");
    while (door.refused(Refusal::refused_by_peer) == 0) std::this_thread::yield();
    CHECK(door.links->look([](const auto& links) { return links.empty(); }));
  }

  TEST_CASE("a server of another authority, mesh, role or time is refused") {
    Dialler dialler;
    const TestMesh impostor;
    {
      Door door(dialler.world.environment(), impostor.tls("parent", Role::root));
      CHECK(code(dialler.dial(door.address()).refusal) == "unknown_ca");
    }
    {
      Door door(dialler.world.environment(), dialler.mesh.tls("viewer", Role::observer));
      CHECK(code(dialler.dial(door.address(), "viewer").refusal) == "wrong_role");
    }
    CertificateOrder order;
    order.node = "old";
    order.valid_days = 1;
    order.valid_from = std::chrono::system_clock::now() - std::chrono::hours(240);
    Door door(dialler.world.environment(), dialler.mesh.load(dialler.mesh.paths(order)));
    CHECK(code(dialler.dial(door.address(), "old").refusal) == "expired");
  }

  TEST_CASE("when the server does not accept our certificate, the link ends as refused by the peer") {
    Dialler dialler;
    Door door(dialler.world.environment(dialler.mesh), dialler.mesh.tls("parent", Role::root));
    CertificateOrder order;
    order.node = "old";
    order.valid_days = 1;
    order.valid_from = std::chrono::system_clock::now() - std::chrono::hours(240);
    const auto expired = dialler.mesh.load(dialler.mesh.paths(order));
    const ConnectResult result = dialler.dial_as(expired, door.address());
    REQUIRE_MESSAGE(result.link != nullptr, result.detail);
    Endpoint child;
    child.start(result.link);
    // Also when we write at once, which fails on the closed socket.
    for (std::uint64_t i = 0; i < 20; ++i) result.link->send(dialler.mesh.frame(i, codec::mib), Lane::data);
    const LinkEnd end = child.wait_for_end();
    CHECK(code(end.why) == "refused_by_peer");
    CHECK(end.detail.find("expired") != std::string::npos);
    CHECK(door.refused(Refusal::expired) == 1);
    dialler.world.stop();
  }

  TEST_CASE("a stopping process answers every call, under way or new") {
    Dialler dialler;
    boost::asio::io_context io;
    tcp::acceptor silent(io, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0));
    Watched<std::vector<Refusal>> answers;
    const auto dial = [&] {
      ConnectTarget target;
      target.node = "parent";
      target.address = "127.0.0.1:" + std::to_string(silent.local_endpoint().port());
      async_connect(dialler.world.environment(), dialler.mesh.tls("child"), target, {},
                    [&](ConnectResult result) { answers.change([&](auto& a) { a.push_back(result.refusal); }); });
    };
    dial();
    tcp::socket accepted = silent.accept();  // so the handshake is under way
    dialler.world.tasks.stop();
    dial();
    CHECK(answers.wait_for([](const auto& a) { return a.size() == 2; }));
    CHECK(answers.get() == std::vector<Refusal>{Refusal::stopped, Refusal::stopped});
    dialler.world.stop();
  }
}
