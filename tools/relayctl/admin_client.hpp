// One question to the daemon and its answer: HTTP/1.1 over the admin socket, waiting for as long as was asked and no
// longer.
//
// Synchronous, on the caller's thread; each call is a connection of its own. Every way in which it can fail comes back
// as an exit code and three sentences, ready for Context::fail().
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

struct ClientError {
  ExitCode exit_code = ExitCode::failed;
  std::string what, why, try_next;
  unsigned http_status = 0;  ///< 0: no answer came
};

/// Either the answer's JSON text or an error.
struct ClientResult {
  std::string body;
  std::optional<ClientError> error;

  [[nodiscard]] bool ok() const noexcept { return !error.has_value(); }
};

class AdminClient {
 public:
  /// `timeout` is for one whole call: connecting, asking, and waiting for the last byte of the answer.
  explicit AdminClient(std::filesystem::path socket, std::chrono::milliseconds timeout);

  /// `target` is a path with its query, percent-encoded: see path_segment().
  [[nodiscard]] ClientResult get(const std::string& target) const;
  /// `body` is a JSON document.
  [[nodiscard]] ClientResult post(const std::string& target, std::string body) const;

 private:
  std::filesystem::path socket_;
  std::chrono::milliseconds timeout_;
};

/// `text` percent-encoded, so that any name can stand between two slashes of a target.
[[nodiscard]] std::string path_segment(const std::string& text);

/// Prints the error and returns its code as the command's result.
int fail(const Context& context, const ClientError& error);

}  // namespace deltarelay::relayctl
