// The daemon as the commands see it: ask for a document, get the document or an error that can be printed as it is.
//
// One per command, on the command's thread. Holds no connection: each question makes its own, so a daemon that restarts
// between two of them is no special case.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/admin_client.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/printable.hpp"

namespace deltarelay::relayctl {

/// `document` is whole only when there is no error; its texts are safe to show. `body` is the answer's JSON as it came.
template <class Document>
struct Answer {
  Document document;
  std::string body;
  std::optional<ClientError> error;
};

class Daemon {
 public:
  /// `timeout`: for one whole question; --timeout when it is left out.
  explicit Daemon(const Context& context, std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  template <class Document>
  [[nodiscard]] Answer<Document> get(const std::string& target) const {
    return read<Document>(ask_get(target), target);
  }
  template <class Document, class Request>
  [[nodiscard]] Answer<Document> post(const std::string& target, const Request& request) const {
    return read<Document>(ask_post(target, relay::admin::to_json(request)), target);
  }
  /// `relayd at /run/relayd/admin.sock`
  [[nodiscard]] std::string who() const;

 private:
  [[nodiscard]] ClientResult ask_get(const std::string& target) const;
  [[nodiscard]] ClientResult ask_post(const std::string& target, std::string body) const;
  [[nodiscard]] ClientError not_understood(const std::string& target, const std::string& why) const;

  template <class Document>
  [[nodiscard]] Answer<Document> read(ClientResult result, const std::string& target) const {
    Answer<Document> answer;
    answer.body = std::move(result.body);
    answer.error = std::move(result.error);
    if (answer.error) return answer;
    if (const std::string wrong = relay::admin::from_json(without_controls(answer.body), answer.document);
        !wrong.empty()) {
      answer.error = not_understood(target, wrong);
    }
    return answer;
  }

  const Context& context_;
  AdminClient client_;
};

/// Prints an answer as `-o json` wants it: what the daemon said, members that this program does not know included.
void print_json(const Context& context, const std::string& body);

}  // namespace deltarelay::relayctl
