#include "relay/net/resolve.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <charconv>
#include <memory>

#include "relay/net/deadline.hpp"

namespace deltarelay::relay::net {
namespace asio = boost::asio;
using asio::ip::tcp;
namespace {

/// Shared with the resolver's handler, which may come after the waiting coroutine has gone.
struct Lookup {
  Lookup(const asio::any_io_executor& strand, std::chrono::steady_clock::duration within)
      : resolver(strand), timer(strand, within) {}

  tcp::resolver resolver;
  asio::steady_timer timer;
  bool answered = false;
  boost::system::error_code failed;
  std::vector<tcp::endpoint> endpoints;
};

void begin(const std::shared_ptr<Lookup>& lookup, const HostPort& target) {
  lookup->resolver.async_resolve(
      target.host, std::to_string(target.port), tcp::resolver::numeric_service,
      [lookup](const boost::system::error_code& failed, const tcp::resolver::results_type& results) {
        lookup->answered = true;
        lookup->failed = failed;
        for (const auto& entry : results) lookup->endpoints.push_back(entry.endpoint());
        lookup->timer.cancel();
      });
}

}  // namespace

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return std::nullopt;
  }
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || port == 0)
    return std::nullopt;
  return HostPort{std::string(host), port};
}

asio::awaitable<ResolveResult> resolve(std::string address, std::chrono::steady_clock::duration within) {
  ResolveResult out;
  const auto target = parse_host_port(address);
  if (!target) {
    out.refusal = Refusal::resolve_failed;
    out.detail = "\"" + address + "\" is not HOST:PORT";
    co_return out;
  }
  boost::system::error_code not_numeric;
  const auto numeric = asio::ip::make_address(target->host, not_numeric);
  if (!not_numeric) {
    out.endpoints.emplace_back(numeric, target->port);
    co_return out;
  }
  const asio::any_io_executor strand = co_await asio::this_coro::executor;
  const auto lookup = std::make_shared<Lookup>(strand, within);
  begin(lookup, *target);
  co_await lookup->timer.async_wait(io);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  if (cancellation.cancelled() != asio::cancellation_type::none) {
    lookup->resolver.cancel();
    out.refusal = Refusal::stopped;
    out.detail = "this process is stopping";
  } else if (!lookup->answered) {
    lookup->resolver.cancel();
    out.refusal = Refusal::resolve_timeout;
    out.detail = "no answer about \"" + target->host + "\" in time";
  } else if (lookup->failed || lookup->endpoints.empty()) {
    out.refusal = Refusal::resolve_failed;
    out.detail = "\"" + target->host + "\": " + (lookup->failed ? lookup->failed.message() : "it has no address");
  } else {
    out.endpoints = lookup->endpoints;
  }
  co_return out;
}

}  // namespace deltarelay::relay::net
