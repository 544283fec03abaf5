// relayctl's client against a real AdminServer and against everything else that may be found at a socket's path.
#include "tools/relayctl/admin_client.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "tests/relay/admin/admin_fixture.hpp"

using namespace deltarelay;
using namespace deltarelay::relayctl;
using namespace deltarelay::relay::admin::testing;
using relay::admin::AdminReply;
using relay::admin::AdminRequest;

namespace {

/// Listens and says `answer` to the first connection, whatever it asks; then it closes.
class FixedAnswer {
 public:
  FixedAnswer(const std::filesystem::path& path, std::string answer)
      : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int client = ::accept(listener_, nullptr, nullptr);
      char asked[4096];
      if (::recv(client, asked, sizeof asked, 0) > 0) ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(client);
    });
  }
  FixedAnswer(const FixedAnswer&) = delete;
  FixedAnswer& operator=(const FixedAnswer&) = delete;
  ~FixedAnswer() {
    thread_.join();
    ::close(listener_);
  }

 private:
  int listener_;
  std::thread thread_;
};

/// A socket that is bound and never listens: what a daemon that was killed leaves behind.
class DeadSocket {
 public:
  explicit DeadSocket(const std::filesystem::path& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  DeadSocket(const DeadSocket&) = delete;
  DeadSocket& operator=(const DeadSocket&) = delete;
  ~DeadSocket() { ::close(socket_); }

 private:
  int socket_;
};

/// While it lives, root is nobody: modes of files mean something. For other users nothing changes.
class WithoutPrivileges {
 public:
  WithoutPrivileges() : root_(::geteuid() == 0), groups_(static_cast<std::size_t>(::getgroups(0, nullptr))) {
    if (!root_) return;
    group_ = ::getegid();
    REQUIRE(::getgroups(static_cast<int>(groups_.size()), groups_.data()) >= 0);
    REQUIRE(::setgroups(0, nullptr) == 0);
    REQUIRE(::setegid(nobody) == 0);
    REQUIRE(::seteuid(nobody) == 0);
  }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;
  ~WithoutPrivileges() {
    if (!root_) return;
    CHECK(::seteuid(0) == 0);
    CHECK(::setegid(group_) == 0);
    CHECK(::setgroups(groups_.size(), groups_.data()) == 0);
  }

 private:
  static constexpr id_t nobody = 65534;
  bool root_;
  gid_t group_ = 0;
  std::vector<gid_t> groups_;
};

ClientError error_of(const ClientResult& result) {
  REQUIRE(result.error.has_value());
  CHECK(result.body.empty());
  return *result.error;
}

}  // namespace

TEST_SUITE("relayctl/admin_client") {
  TEST_CASE("answers and bodies pass unchanged, large ones too") {
    RunningServer running;
    running.server().route("GET", "/v1/nodes/{name}", [](const AdminRequest& request, const AdminReply& reply) {
      reply.send(200, request.captures.at("name") + '|' + request.query.at("x"));
    });
    running.server().route("POST", "/v1/publish", [](const AdminRequest& request, const AdminReply& reply) {
      reply.send(200, request.body + request.body);
    });
    running.start();
    const AdminClient client(running.path(), 20s);
    const ClientResult got = client.get("/v1/nodes/" + path_segment("a/b ü%?") + "?x=1");
    REQUIRE(got.ok());
    CHECK(got.body == "a/b ü%?|1");
    const std::string large(900'000, 'x');
    const ClientResult posted = client.post("/v1/publish", large);
    REQUIRE(posted.ok());
    CHECK(posted.body == large + large);
  }

  TEST_CASE("the daemon's error comes back with its own exit code and words") {
    RunningServer running;
    running.options.body_bytes_max = 1000;
    running.server().route("POST", "/v1/abort", [](const AdminRequest&, const AdminReply& reply) {
      relay::admin::ErrorDocument error;
      error.what = "cannot abort v9";
      error.why = "no refit v9 is in flight";
      error.try_next = "relayctl status";
      error.exit_code = 6;
      relay::admin::refuse(reply, 409, error);
    });
    running.server().route("GET", "/v1/odd", [](const AdminRequest&, const AdminReply& reply) {
      relay::admin::ErrorDocument error;
      error.exit_code = 0;
      relay::admin::refuse(reply, 500, error);
    });
    running.server().route("GET", "/v1/mute",
                           [](const AdminRequest&, const AdminReply& reply) { reply.send(500, "oops"); });
    running.start();
    const AdminClient client(running.path(), 20s);
    const ClientError refused = error_of(client.post("/v1/abort", "{}"));
    CHECK(refused.exit_code == ExitCode::precondition);
    CHECK(refused.what == "cannot abort v9");
    CHECK(refused.why == "no refit v9 is in flight");
    CHECK(refused.try_next == "relayctl status");
    CHECK(refused.http_status == 409);
    CHECK(error_of(client.get("/v1/odd")).exit_code == ExitCode::failed);  // an error is never success
    CHECK(contains(error_of(client.get("/v1/mute")).what, "answered HTTP 500"));
    CHECK(error_of(client.get("/v1/nothing")).http_status == 404);
    // Refused while it is still being sent: the answer counts, not the broken pipe.
    CHECK(error_of(client.post("/v1/abort", std::string(8u << 20, 'x'))).http_status == 413);
  }

  TEST_CASE("a missing, dead or wrong socket is exit code 4 with the reason") {
    TemporaryDirectory directory;
    const auto path = directory / "admin.sock";
    const ClientError missing = error_of(AdminClient(path, 20s).get("/v1/status"));
    CHECK(missing.exit_code == ExitCode::unreachable);
    CHECK(missing.what == "cannot reach relayd at " + path.string());
    CHECK(error_line(missing.what, missing.why, missing.try_next) ==
          "error: cannot reach relayd at " + path.string() +
              ": no such file, so relayd does not run or listens elsewhere. Try: start relayd, or --socket PATH, as "
              "admin.socket in relayd.yaml has it");
    const ClientError no_directory = error_of(AdminClient(directory / "none" / "admin.sock", 20s).get("/v1/status"));
    CHECK(no_directory.exit_code == ExitCode::unreachable);
    CHECK(contains(no_directory.why, "no directory " + (directory / "none").string()));
    std::ofstream(directory / "file") << "x";
    const ClientError no_socket = error_of(AdminClient(directory / "file", 20s).get("/v1/status"));
    CHECK(no_socket.exit_code == ExitCode::unreachable);
    CHECK(no_socket.why == "this file is no socket");
    const ClientError inside_file = error_of(AdminClient(directory / "file" / "admin.sock", 20s).get("/v1/status"));
    CHECK(inside_file.why == "a part of the path is no directory");
    const DeadSocket dead(path);
    const ClientError ended = error_of(AdminClient(path, 20s).get("/v1/status"));
    CHECK(ended.exit_code == ExitCode::unreachable);
    CHECK(ended.why == "nobody listens on this socket: its relayd has ended");
    CHECK(contains(ended.try_next, "start relayd again"));
    const ClientError too_long = error_of(AdminClient(directory / std::string(200, 'a'), 20s).get("/v1/status"));
    CHECK(too_long.exit_code == ExitCode::unreachable);
  }

  TEST_CASE("a socket that may not be used says who may") {
    TemporaryDirectory directory;
    const auto path = directory / "admin.sock";
    std::filesystem::permissions(path.parent_path(), std::filesystem::perms(0755));
    const DeadSocket socket(path);
    const auto ask_with_mode = [&](unsigned mode, const std::filesystem::path& of) {
      std::filesystem::permissions(of, std::filesystem::perms(mode));
      const WithoutPrivileges ordinary;
      return error_of(AdminClient(path, 20s).get("/v1/status"));
    };
    const ClientError owner_only = ask_with_mode(0400, path);
    CHECK(owner_only.exit_code == ExitCode::unreachable);
    CHECK(owner_only.why == "permission denied: only its owner may use this socket");
    CHECK(contains(owner_only.try_next, "admin.mode"));
    const ClientError group_only = ask_with_mode(0060, path);
    CHECK(contains(group_only.why, "permission denied: only its owner and the group "));
    CHECK(contains(group_only.try_next, "as a member of the group "));
    const ClientError no_way_in = ask_with_mode(0600, path.parent_path());
    CHECK(no_way_in.why == "permission denied: a directory on the way may not be entered");
    std::filesystem::permissions(path.parent_path(), std::filesystem::perms(0700));  // or it could not be removed
  }

  TEST_CASE("a daemon that accepts and says nothing is exit code 5 after the time-out") {
    RunningServer running;
    std::vector<AdminReply> kept;
    running.server().route("GET", "/v1/later",
                           [&](const AdminRequest&, const AdminReply& reply) { kept.push_back(reply); });
    running.start();
    const auto begun = std::chrono::steady_clock::now();
    const ClientError error = error_of(AdminClient(running.path(), 50ms).get("/v1/later"));
    CHECK(error.exit_code == ExitCode::timed_out);
    CHECK(error.why == "waiting for the answer took longer than 50 ms");
    CHECK(std::chrono::steady_clock::now() - begun < 10s);
    running.stop();
  }

  TEST_CASE("an answer that ends early or is not HTTP is an error, never half a document") {
    TemporaryDirectory directory;
    const auto ask = [&](const std::string& name, const std::string& answer) {
      const FixedAnswer server(directory / name, answer);
      return error_of(AdminClient(directory / name, 20s).get("/v1/status"));
    };
    CHECK(ask("a", "").exit_code == ExitCode::unreachable);
    CHECK(ask("b", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"schema\"").exit_code == ExitCode::unreachable);
    CHECK(ask("c", "SSH-2.0-OpenSSH_9.2\r\n\r\n").exit_code == ExitCode::failed);
    CHECK(ask("d", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}").http_status == 404);
  }
}
