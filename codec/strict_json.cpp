#include "codec/strict_json.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "codec/layout.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

namespace json = boost::json;
using json::error_code;

/// Adapts Boost's handler to JsonEvents: joins the parts of strings, sorts numbers out, finds doubled keys.
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  explicit Handler(JsonEvents& events) : events_(events) {}

  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] const std::optional<std::string>& doubled_key() const noexcept { return doubled_key_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& ec) {
    keys_.emplace_back();
    return pass(events_.begin_object(), ec);
  }
  bool on_object_end(std::size_t, error_code& ec) {
    if (!take_keys(ec)) return false;
    return pass(events_.end_object(), ec);
  }
  bool on_array_begin(error_code& ec) { return pass(events_.begin_array(), ec); }
  bool on_array_end(std::size_t, error_code& ec) { return pass(events_.end_array(), ec); }

  bool on_key_part(json::string_view part, std::size_t, error_code&) { return append(part); }
  bool on_key(json::string_view part, std::size_t, error_code& ec) {
    append(part);
    const bool go_on = events_.key(text_);
    keys_.back().push_back(std::exchange(text_, {}));
    return pass(go_on, ec);
  }
  bool on_string_part(json::string_view part, std::size_t, error_code&) { return append(part); }
  bool on_string(json::string_view part, std::size_t, error_code& ec) {
    append(part);
    const bool go_on = events_.string(text_);
    text_.clear();
    return pass(go_on, ec);
  }

  bool on_number_part(json::string_view part, error_code&) {
    number_minus_ = number_minus_ || part.starts_with('-');
    return true;
  }
  bool on_int64(std::int64_t value, json::string_view text, error_code& ec) {
    // "-0" arrives here as 0; the reference takes it for a float.
    const bool minus = std::exchange(number_minus_, false) || text.starts_with('-');
    return pass(minus ? events_.other("a negative number") : events_.integer(static_cast<std::uint64_t>(value)), ec);
  }
  bool on_uint64(std::uint64_t value, json::string_view, error_code& ec) {
    number_minus_ = false;
    return pass(events_.integer(value), ec);
  }
  bool on_double(double value, json::string_view, error_code& ec) {
    number_minus_ = false;
    if (!std::isfinite(value)) {
      ec = json::error::exponent_overflow;
      return false;
    }
    return pass(events_.other("a number that is no 64-bit integer"), ec);
  }
  bool on_bool(bool value, error_code& ec) { return pass(events_.other(value ? "true" : "false"), ec); }
  bool on_null(error_code& ec) { return pass(events_.other("null"), ec); }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  bool append(json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool pass(bool go_on, error_code& ec) {
    if (go_on) return true;
    stopped_ = true;
    ec = json::error::exception;  // any code will do: stopped() tells
    return false;
  }
  /// Sorting finds doubles in n log n whatever the names; a hash table could be attacked by its keys.
  bool take_keys(error_code& ec) {
    std::vector<std::string> keys = std::move(keys_.back());
    keys_.pop_back();
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice == keys.end()) return true;
    doubled_key_ = *twice;
    ec = json::error::exception;
    return false;
  }

  JsonEvents& events_;
  std::vector<std::vector<std::string>> keys_;  // of each open object
  std::string text_;                            // the string or key that is being read
  std::optional<std::string> doubled_key_;
  bool number_minus_ = false;
  bool stopped_ = false;
};

json::parse_options strict_options() {
  json::parse_options options;
  options.max_depth = json_depth_max;
  options.allow_comments = false;
  options.allow_trailing_commas = false;
  options.allow_invalid_utf8 = false;
  return options;
}

}  // namespace

std::optional<JsonProblem> parse_json(std::string_view text, JsonEvents& events) {
  json::basic_parser<Handler> parser(strict_options(), events);
  error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (parser.handler().stopped()) return JsonProblem{JsonProblem::Kind::stopped, {}};
  if (const auto& key = parser.handler().doubled_key())
    return JsonProblem{JsonProblem::Kind::duplicate_key, display_name(*key)};
  if (!ec && used < text.size()) ec = json::error::extra_data;
  if (ec) return JsonProblem{JsonProblem::Kind::syntax, ec.message() + " at byte " + std::to_string(used)};
  return std::nullopt;
}

std::string json_quoted(std::string_view text) {
  return json::serialize(json::value(json::string_view(text.data(), text.size())));
}

}  // namespace deltarelay::codec
