// JSON as a stream of events, by the strictest reading: UTF-8 checked, lone surrogates, comments, trailing commas and
// doubled keys refused, depth limited (limits.hpp).
//
// Why events and not a tree: a header may have 100 MB, and a tree would cost ten times that and keep only one of two
// equal keys without a word. Layer: codec; the only place that sees Boost.JSON's parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deltarelay::codec {

/// Receives the document. Returning false stops the parse; the receiver keeps its own reason.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool begin_object() = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
  virtual bool key(std::string_view name) = 0;
  virtual bool string(std::string_view text) = 0;
  /// A whole number of 0 to 2^64-1 written without sign, fraction or exponent.
  virtual bool integer(std::uint64_t value) = 0;
  /// Any other scalar: null, a boolean, another number. `text` says which, for messages.
  virtual bool other(std::string_view text) = 0;
};

struct JsonProblem {
  enum class Kind { syntax, duplicate_key, stopped };
  Kind kind;
  std::string text;  ///< what and at which byte; empty for `stopped`
};

/// Parses exactly one document that fills `text` (white space may surround it). nullopt: it was well-formed, and no event
/// asked to stop.
[[nodiscard]] std::optional<JsonProblem> parse_json(std::string_view text, JsonEvents& events);

/// `text` as a JSON string, with its quotes.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace deltarelay::codec
