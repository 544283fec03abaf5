// Which handler a request goes to: paths cut into segments, percent-decoded, and compared with patterns.
//
// Layer: relay/admin, internal to the server; pure. The table is filled before the server starts and only read
// afterwards.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/admin/admin_server.hpp"

namespace deltarelay::relay::admin {

/// A request's target: path and query, decoded.
struct Target {
  std::string path;
  std::vector<std::string> segments;
  std::map<std::string, std::string> query;
};

/// Nullopt for what is no origin-form target: no leading slash, or a '%' without two hexadecimal digits behind it.
[[nodiscard]] std::optional<Target> parse_target(std::string_view target);

struct Route {
  std::string method;
  std::vector<std::string> pattern;  ///< "{name}" captures
  AdminHandler handler;
  std::chrono::steady_clock::duration answer_within{};
};

class Routes {
 public:
  void add(std::string_view method, std::string_view pattern, AdminHandler handler,
           std::chrono::steady_clock::duration answer_within);

  struct Found {
    const Route* route = nullptr;  ///< null: see `allowed`
    std::map<std::string, std::string> captures;
    std::string allowed;  ///< methods that the path has, as an Allow header lists them; empty: no such path
  };
  /// The pointer lives as long as the table is not added to.
  [[nodiscard]] Found find(std::string_view method, const Target& target) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace deltarelay::relay::admin
