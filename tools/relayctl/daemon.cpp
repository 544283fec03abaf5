// See daemon.hpp.
#include "tools/relayctl/daemon.hpp"

namespace deltarelay::relayctl {
namespace {

std::optional<ClientError> not_local(const Context& context) {
  if (context.addr.empty()) return std::nullopt;
  ClientError error;
  error.exit_code = ExitCode::usage;
  error.what = "cannot use --addr " + context.addr;
  error.why = "the admin API of this release listens on the daemon's Unix socket only";
  error.try_next = "ssh to the host and run relayctl there";
  return error;
}

}  // namespace

Daemon::Daemon(const Context& context, std::optional<std::chrono::milliseconds> timeout)
    : context_(context), client_(context.socket, timeout.value_or(context.timeout)) {}

std::string Daemon::who() const {
  return "relayd at " + context_.socket;
}

ClientResult Daemon::ask_get(const std::string& target) const {
  if (auto error = not_local(context_)) return {.body = {}, .error = std::move(error)};
  context_.detail("GET " + target + " from " + who());
  return client_.get(target);
}

ClientResult Daemon::ask_post(const std::string& target, std::string body) const {
  if (auto error = not_local(context_)) return {.body = {}, .error = std::move(error)};
  context_.detail("POST " + target + " to " + who() + ": " + body);
  return client_.post(target, std::move(body));
}

ClientError Daemon::not_understood(const std::string& target, const std::string& why) const {
  ClientError error;
  error.exit_code = ExitCode::failed;
  error.what = "cannot understand the answer of " + who() + " to " + target;
  error.why = why;
  error.try_next = "a relayctl of the daemon's version";
  return error;
}

void print_json(const Context& context, const std::string& body) {
  context.print(relay::admin::indented_json(body));
}

}  // namespace deltarelay::relayctl
