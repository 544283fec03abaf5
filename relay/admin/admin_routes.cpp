#include "relay/admin/admin_routes.hpp"

#include <cassert>
#include <charconv>
#include <utility>

namespace deltarelay::relay::admin {
namespace {

std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      unsigned value = 0;
      if (i + 2 >= text.size()) return std::nullopt;
      const char* digits = text.data() + i + 1;
      const auto [stop, failed] = std::from_chars(digits, digits + 2, value, 16);
      if (failed != std::errc{} || stop != digits + 2) return std::nullopt;
      out += static_cast<char>(value);
      i += 2;
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_capture(const std::string& segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

/// Captures of `pattern` in `segments`, or nullopt when they do not match.
std::optional<std::map<std::string, std::string>> match(const std::vector<std::string>& pattern,
                                                        const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return std::nullopt;
  std::map<std::string, std::string> captures;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_capture(pattern[i])) {
      if (segments[i].empty()) return std::nullopt;
      captures[pattern[i].substr(1, pattern[i].size() - 2)] = segments[i];
    } else if (pattern[i] != segments[i]) {
      return std::nullopt;
    }
  }
  return captures;
}

}  // namespace

std::optional<Target> parse_target(std::string_view target) {
  if (target.empty() || target.front() != '/') return std::nullopt;
  Target out;
  const std::size_t mark = target.find('?');
  // Cut before decoding: a slash that was encoded belongs to a name.
  for (const std::string_view segment :
       split(target.substr(1, mark == std::string_view::npos ? mark : mark - 1), '/')) {
    auto name = decoded(segment, false);
    if (!name) return std::nullopt;
    out.path += '/' + *name;
    out.segments.push_back(std::move(*name));
  }
  if (mark == std::string_view::npos) return out;
  for (const std::string_view pair : split(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto key = decoded(pair.substr(0, equals), true);
    auto value =
        equals == std::string_view::npos ? std::optional<std::string>("") : decoded(pair.substr(equals + 1), true);
    if (!key || !value) return std::nullopt;
    out.query[std::move(*key)] = std::move(*value);
  }
  return out;
}

void Routes::add(std::string_view method, std::string_view pattern, AdminHandler handler,
                 std::chrono::steady_clock::duration answer_within) {
  assert(!pattern.empty() && pattern.front() == '/' && handler);
  Route route;
  route.method = method;
  for (const std::string_view segment : split(pattern.substr(1), '/')) route.pattern.emplace_back(segment);
  route.handler = std::move(handler);
  route.answer_within = answer_within;
  routes_.push_back(std::move(route));
}

Routes::Found Routes::find(std::string_view method, const Target& target) const {
  Found found;
  std::size_t fewest = 0;
  for (const Route& route : routes_) {
    auto captures = match(route.pattern, target.segments);
    if (!captures) continue;
    if (route.method != method) {
      found.allowed += (found.allowed.empty() ? "" : ", ") + route.method;
    } else if (found.route == nullptr || captures->size() < fewest) {
      fewest = captures->size();
      found.route = &route;
      found.captures = std::move(*captures);
    }
  }
  return found;
}

}  // namespace deltarelay::relay::admin
