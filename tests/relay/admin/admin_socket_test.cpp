// The socket file: mode, stale and live ones, and what is left behind.
// The admin server's Unix socket: mode, lock, and what an earlier process left.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/relay/admin/admin_fixture.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::admin;
using namespace deltarelay::relay::admin::testing;

namespace {

/// A socket file bound by hand; listening or dead.
int bind_socket(const std::filesystem::path& path, bool listening) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  if (listening) REQUIRE(::listen(fd, 4) == 0);
  return fd;
}

/// start() and, if that went well, stop(); what it said.
std::string try_to_start(const std::filesystem::path& path) {
  Threads threads;
  AdminOptions options;
  options.path = path;
  AdminServer server(threads.context().get_executor(), options);
  const auto started = server.start();
  stop_and_wait(server);
  return started ? "" : started.error().text();
}

}  // namespace

TEST_SUITE("relay/admin/admin_socket") {
  TEST_CASE("the socket has exactly the mode asked for, whatever the umask") {
    for (const mode_t mask : {mode_t{0077}, mode_t{0}}) {
      const mode_t before = ::umask(mask);
      RunningServer running;
      running.options.mode = 0660;
      running.start();
      ::umask(before);
      struct stat status {};
      REQUIRE(::stat(running.path().c_str(), &status) == 0);
      CHECK(S_ISSOCK(status.st_mode));
      CHECK((status.st_mode & 0777) == 0660);
    }
  }

  TEST_CASE("a dead daemon's socket is replaced") {
    TemporaryDirectory directory;
    const auto path = directory / "admin.sock";
    ::close(bind_socket(path, true));
    REQUIRE(std::filesystem::exists(path));
    CHECK(try_to_start(path) == "");
  }

  TEST_CASE("a socket that somebody listens on is an error and stays") {
    TemporaryDirectory directory;
    const auto path = directory / "admin.sock";
    const int live = bind_socket(path, true);
    CHECK(contains(try_to_start(path), "another process listens on it"));
    RawClient still_there(path);
    ::close(live);
  }

  TEST_CASE("a second server on the path is refused and the first one goes on") {
    RunningServer running;
    running.server().route("GET", "/v1/x",
                           [](const AdminRequest&, const AdminReply& reply) { reply.send(200, "\"x\""); });
    running.start();
    CHECK(contains(try_to_start(running.path()), "another relayd has it"));
    RawClient client(running.path());
    client.send("GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(contains(client.read_all(), "HTTP/1.1 200 "));
  }

  TEST_CASE("a file or directory that is no socket is never removed") {
    TemporaryDirectory directory;
    const auto file = directory / "file";
    std::ofstream(file) << "precious";
    CHECK(contains(try_to_start(file), "no socket"));
    std::string content;
    std::ifstream(file) >> content;
    CHECK(content == "precious");
    const auto sub = directory / "sub";
    std::filesystem::create_directory(sub);
    CHECK(contains(try_to_start(sub), "no socket"));
    CHECK(std::filesystem::is_directory(sub));
    const auto link = directory / "link";
    std::filesystem::create_symlink(file, link);
    CHECK(contains(try_to_start(link), "no socket"));
    CHECK(std::filesystem::is_symlink(link));
  }

  TEST_CASE("a path that is too long or whose directory is missing is an error that names it") {
    TemporaryDirectory directory;
    CHECK(contains(try_to_start(directory / std::string(120, 'a')), "1 to 107 bytes"));
    const auto missing = directory / "no" / "admin.sock";
    const std::string said = try_to_start(missing);
    CHECK(contains(said, missing.string()));
    CHECK(contains(said, "No such file"));
  }

  TEST_CASE("stop removes the socket file, but not one that has taken its place") {
    RunningServer first;
    first.start();
    first.stop();
    CHECK_FALSE(std::filesystem::exists(first.path()));
    first.stop();  // again is fine

    RunningServer second;
    second.start();
    std::filesystem::remove(second.path());
    const int other = bind_socket(second.path(), true);
    second.stop();
    CHECK(std::filesystem::exists(second.path()));
    ::close(other);
  }

  TEST_CASE("stop ends idle connections and pending requests, and the path can be used again at once") {
    RunningServer running;
    running.server().route("GET", "/v1/x",
                           [](const AdminRequest&, const AdminReply& reply) { reply.send(200, "\"x\""); });
    running.start();
    RawClient idle(running.path());
    idle.send("GET /v1/x HTTP/1.1\r\nHost: x\r\n\r\n");
    idle.read_until("\"x\"");
    RawClient half(running.path());
    half.send("GET /v1/");
    running.stop();
    CHECK(idle.read_all().empty());
    CHECK(half.read_all().empty());
    CHECK(running.server().connections() == 0);
    CHECK(try_to_start(running.path()) == "");
  }
}
