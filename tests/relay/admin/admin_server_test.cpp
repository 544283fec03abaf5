// The server as a client meets it: routes, bounds, deadlines, and answers that come late or never.
// The admin server's answers to requests, right and wrong ones.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "tests/relay/admin/admin_fixture.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::admin;
using namespace deltarelay::relay::admin::testing;

namespace {

std::string json_of(std::string_view text) {
  std::string out("\"");
  out += text;
  out += '"';
  return out;
}

/// Answers with what the handler was given, so that tests see it.
void echo(const AdminRequest& request, const AdminReply& reply) {
  std::string text = request.method + '|' + request.path + '|';
  for (const auto& [key, value] : request.captures) text += key + '=' + value + ';';
  text += '|';
  for (const auto& [key, value] : request.query) text += key + '=' + value + ';';
  text += '|' + request.body + '|';
  text += request.peer_uid == ::getuid() ? "me" : "?";
  reply.send(200, json_of(text));
}

std::string converse(const RunningServer& running, std::string_view bytes) {
  RawClient client(running.path());
  client.send(bytes);
  client.end_of_sending();
  return client.read_all();
}

std::string get(const RunningServer& running, const std::string& target) {
  return converse(running, "GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

bool becomes_empty(AdminServer& server) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (server.connections() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return server.connections() == 0;
}

int count_of(std::string_view text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_SUITE("relay/admin/admin_server") {
  TEST_CASE("a request reaches the handler with captures, query, body and peer") {
    RunningServer running;
    running.server().route("GET", "/v1/nodes/{name}", echo);
    running.server().route("POST", "/v1/publish", echo);
    running.start();
    const std::string node = get(running, "/v1/nodes/a%2Fb?x=1&y=a+b%21&x=2");
    CHECK(contains(node, "HTTP/1.1 200 OK"));
    CHECK(contains(node, "Content-Type: application/json"));
    CHECK(contains(node, "\"GET|/v1/nodes/a/b|name=a/b;|x=2;y=a b!;||me\""));
    const std::string posted = converse(running, "POST /v1/publish HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    CHECK(contains(posted, "\"POST|/v1/publish|||{}|me\""));
    const std::string chunked = converse(running,
                                         "POST /v1/publish HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                         "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    CHECK(contains(chunked, "|abc|"));
  }

  TEST_CASE("a fixed segment wins over a capture, whichever was added first") {
    RunningServer running;
    running.server().route("GET", "/v1/{any}",
                           [](const AdminRequest&, const AdminReply& reply) { reply.send(200, "\"any\""); });
    running.server().route("GET", "/v1/tree",
                           [](const AdminRequest&, const AdminReply& reply) { reply.send(200, "\"tree\""); });
    running.start();
    CHECK(contains(get(running, "/v1/tree"), "\"tree\""));
    CHECK(contains(get(running, "/v1/other"), "\"any\""));
  }

  TEST_CASE("unknown paths, wrong methods and targets that are none are refused with what to try") {
    RunningServer running;
    running.server().route("GET", "/v1/status", echo);
    running.server().route("POST", "/v1/abort", echo);
    running.start();
    const std::string unknown = get(running, "/v1/nothing");
    CHECK(contains(unknown, "HTTP/1.1 404 "));
    CHECK(contains(unknown, "relayd has nothing at /v1/nothing"));
    CHECK(contains(unknown, "\"schema\":\"deltarelay.error/1\""));
    CHECK(contains(get(running, "/v1/status/"), "HTTP/1.1 404 "));
    const std::string wrong = get(running, "/v1/abort");
    CHECK(contains(wrong, "HTTP/1.1 405 "));
    CHECK(contains(wrong, "Allow: POST\r\n"));
    CHECK(contains(get(running, "/v1/%zz"), "HTTP/1.1 400 "));
    CHECK(contains(get(running, "/v1/%2"), "HTTP/1.1 400 "));
    CHECK(contains(get(running, "http://elsewhere/v1/status"), "HTTP/1.1 400 "));
  }

  TEST_CASE("what is not HTTP gets 400 and the connection ends") {
    RunningServer running;
    running.server().route("GET", "/v1/status", echo);
    running.start();
    for (const char* bytes :
         {"\x16\x03\x01\x02\n\r\n\r\n", "GET\r\n\r\n", "GET /v1/status HTTP/9.9\r\n\r\n",
          "GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n", "POST /v1/status HTTP/1.1\r\nContent-Length: -1\r\n\r\n"}) {
      CAPTURE(bytes);
      const std::string answer = converse(running, bytes);
      CHECK(contains(answer, "HTTP/1.1 400 "));
      CHECK(contains(answer, "\"exit_code\":2"));
    }
    CHECK(converse(running, "GET /v1/sta").empty());  // nobody is left to be told
    CHECK(contains(get(running, "/v1/status"), "HTTP/1.1 200 "));
  }

  TEST_CASE("headers and bodies past their limits are refused, also when the length is not stated") {
    RunningServer running;
    running.options.header_bytes_max = 1024;
    running.options.body_bytes_max = 1000;
    running.server().route("POST", "/v1/publish", echo);
    running.start();
    const std::string large(200'000, 'x');
    const std::string head = "POST /v1/publish HTTP/1.1\r\nHost: x\r\n";
    CHECK(contains(converse(running, head + "Content-Length: 200000\r\n\r\n" + large), "HTTP/1.1 413 "));
    CHECK(contains(converse(running, head + "Content-Length: 1001\r\n\r\n"), "HTTP/1.1 413 "));
    CHECK(contains(converse(running, head + "Transfer-Encoding: chunked\r\n\r\n30d40\r\n" + large + "\r\n0\r\n\r\n"),
                   "HTTP/1.1 413 "));
    CHECK(contains(converse(running, head + "X-Long: " + large + "\r\n\r\n"), "HTTP/1.1 431 "));
    CHECK(contains(converse(running, head + "Content-Length: 1000\r\n\r\n" + large.substr(0, 1000)), "HTTP/1.1 200 "));
  }

  TEST_CASE("one connection carries many requests, pipelined ones too, and HTTP/1.0 closes") {
    RunningServer running;
    running.server().route("GET", "/v1/status", echo);
    running.start();
    RawClient client(running.path());
    const std::string request = "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n";
    client.send(request);
    CHECK(contains(client.read_until("|me\""), "HTTP/1.1 200 "));
    client.send(request + request + "GET /v1/status?last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const std::string answers = client.read_all();
    CHECK(count_of(answers, "HTTP/1.1 200 ") == 3);
    CHECK(contains(answers, "last=;"));
    RawClient old(running.path());
    old.send("GET /v1/status HTTP/1.0\r\n\r\n");
    CHECK(contains(old.read_all(), "|me\""));
  }

  TEST_CASE("a client that does not finish its request is told so and cut off; others are served meanwhile") {
    RunningServer running;
    running.options.request_within = 100ms;
    running.server().route("GET", "/v1/status", echo);
    running.start();
    RawClient slow(running.path());
    slow.send("GET /v1/status HT");
    CHECK(contains(get(running, "/v1/status"), "HTTP/1.1 200 "));
    CHECK(contains(slow.read_all(), "HTTP/1.1 408 "));
  }

  TEST_CASE("a connection that asks nothing ends after the idle time") {
    RunningServer running;
    running.options.idle_within = 50ms;
    running.start();
    RawClient idle(running.path());
    CHECK(idle.read_all().empty());
  }

  TEST_CASE("a client that does not read its answer is cut off") {
    RunningServer running;
    running.options.write_within = 100ms;
    running.server().route("GET", "/v1/big", [](const AdminRequest&, const AdminReply& reply) {
      reply.send(200, std::string(8u << 20, 'x'));
    });
    running.start();
    RawClient client(running.path());
    client.send("GET /v1/big HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until("HTTP/1.1 200 ");
    CHECK(becomes_empty(running.server()));
    CHECK(client.read_all().size() < (8u << 20));
  }

  TEST_CASE("one connection too many is told so, and there is room again when one has gone") {
    RunningServer running;
    running.options.connections_max = 1;
    running.server().route("GET", "/v1/status", echo);
    running.start();
    {
      RawClient first(running.path());
      first.send("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n");
      first.read_until("|me\"");
      const std::string refused = get(running, "/v1/status");
      CHECK(contains(refused, "HTTP/1.1 503 "));
      CHECK(contains(refused, "\"exit_code\":4"));
    }
    CHECK(becomes_empty(running.server()));
    CHECK(contains(get(running, "/v1/status"), "HTTP/1.1 200 "));
  }

  TEST_CASE("a large answer arrives whole") {
    RunningServer running;
    const std::string large = json_of(std::string(5u << 20, 'y'));
    running.server().route("GET", "/v1/big",
                           [&](const AdminRequest&, const AdminReply& reply) { reply.send(200, large); });
    running.start();
    const std::string answer = get(running, "/v1/big");
    CHECK(answer.size() > large.size());
    CHECK(answer.substr(answer.size() - large.size()) == large);
  }
}

TEST_SUITE("relay/admin/admin_reply") {
  TEST_CASE("an answer may come later and from another thread, and the first one counts") {
    RunningServer running;
    std::promise<AdminReply> handed;
    running.server().route("GET", "/v1/later",
                           [&](const AdminRequest&, const AdminReply& reply) { handed.set_value(reply); });
    running.start();
    RawClient client(running.path());
    client.send("GET /v1/later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    AdminReply reply = handed.get_future().get();
    CHECK(reply.wanted());
    std::thread([reply] { reply.send(200, "\"first\""); }).join();
    CHECK_FALSE(reply.wanted());
    reply.send(200, "\"second\"");
    const std::string answer = client.read_all();
    CHECK(contains(answer, "\"first\""));
    CHECK_FALSE(contains(answer, "second"));
  }

  TEST_CASE("a handler that drops its reply or throws makes 500, and the exception is reported") {
    std::mutex mutex;
    std::string reported;
    RunningServer running;
    running.options.report = [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      reported += text;
    };
    running.server().route("GET", "/v1/drop", [](const AdminRequest&, const AdminReply&) {});
    running.server().route("GET", "/v1/throw",
                           [](const AdminRequest&, const AdminReply&) { throw std::runtime_error("boom"); });
    running.start();
    CHECK(contains(get(running, "/v1/drop"), "HTTP/1.1 500 "));
    CHECK(contains(get(running, "/v1/throw"), "HTTP/1.1 500 "));
    const std::lock_guard lock(mutex);
    CHECK(contains(reported, "GET /v1/throw"));
    CHECK(contains(reported, "boom"));
  }

  TEST_CASE("after the route's deadline the client gets 504 and the late answer is ignored") {
    RunningServer running;
    std::promise<AdminReply> handed;
    running.server().route(
        "GET", "/v1/later", [&](const AdminRequest&, const AdminReply& reply) { handed.set_value(reply); }, 50ms);
    running.server().route("GET", "/v1/status", echo);
    running.start();
    RawClient client(running.path());
    client.send("GET /v1/later HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.read_until("\"exit_code\":5}");
    CHECK(contains(answer, "HTTP/1.1 504 "));
    CHECK(contains(answer, "it took longer than 50 ms"));
    const AdminReply reply = handed.get_future().get();
    CHECK_FALSE(reply.wanted());
    reply.send(200, "\"late\"");
    // The connection is still good, and the late answer does not show up as somebody else's.
    client.send("GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const std::string next = client.read_all();
    CHECK(contains(next, "|/v1/status|"));
    CHECK_FALSE(contains(next, "late"));
  }

  TEST_CASE("a reply may outlive the server and its executor") {
    std::vector<AdminReply> kept;
    {
      RunningServer running;
      std::promise<AdminReply> handed;
      running.server().route("GET", "/v1/later",
                             [&](const AdminRequest&, const AdminReply& reply) { handed.set_value(reply); });
      running.start();
      RawClient client(running.path());
      client.send("GET /v1/later HTTP/1.1\r\nHost: x\r\n\r\n");
      kept.push_back(handed.get_future().get());
      running.stop();
      CHECK(client.read_all().empty());
    }
    CHECK_FALSE(kept.front().wanted());
    kept.front().send(200, "{}");
    kept.clear();
  }

  TEST_CASE("every one of many answers from other threads reaches its own client") {
    RunningServer running;
    std::mutex mutex;
    std::vector<std::thread> answering;
    running.server().route("GET", "/v1/nodes/{name}", [&](AdminRequest request, AdminReply reply) {
      const std::lock_guard lock(mutex);
      answering.emplace_back([request = std::move(request), reply = std::move(reply)] {
        reply.send(200, json_of(request.captures.at("name")));
      });
    });
    running.start();
    std::atomic<int> right = 0;
    std::vector<std::thread> clients;
    for (int c = 0; c < 8; ++c) {
      clients.emplace_back([&, c] {
        for (int i = 0; i < 25; ++i) {
          const std::string name = fmt::format("n{}-{}", c, i);
          if (contains(get(running, "/v1/nodes/" + name), json_of(name))) ++right;
        }
      });
    }
    for (auto& client : clients) client.join();
    for (auto& thread : answering) thread.join();
    CHECK(right == 200);
  }
}
