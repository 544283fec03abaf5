// Documents to JSON text and back, driven by document_fields.hpp.
#include "relay/admin/documents.hpp"

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <concepts>
#include <cstdio>

#include "relay/admin/document_fields.hpp"
#include "relay/admin/json_text.hpp"

namespace deltarelay::relay::admin {
namespace {

namespace json = boost::json;

template <class T>
concept Id64 = std::same_as<T, Version> || std::same_as<T, Epoch>;

/// From documents to JSON values.
struct Writer {
  json::object object;

  template <class T>
  void operator()(std::string_view name, const T& member) {
    object.emplace(name, value(member));
  }
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& member) {
    if (member) object.emplace(name, value(*member));
  }

  static json::value value(const std::string& text) { return json::value(text); }
  static json::value value(bool flag) { return json::value(flag); }
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  static json::value value(T number) {
    return json::value(std::uint64_t{number});
  }
  static json::value value(int number) { return json::value(std::int64_t{number}); }
  static json::value value(double number) { return json::value(number); }
  static json::value value(Time at) { return json::value(time_text(at)); }
  template <Id64 T>
  static json::value value(T id) {
    return json::value(std::to_string(raw(id)));
  }
  template <class T>
  static json::value value(const std::vector<T>& list) {
    json::array array;
    array.reserve(list.size());
    for (const auto& item : list) array.push_back(value(item));
    return array;
  }
  template <class T>
    requires std::is_class_v<T>
  static json::value value(const T& document) {
    Writer inner;
    describe(inner, document);
    return std::move(inner.object);
  }
};

/// From JSON values to documents. The first error is kept, with the path to it; after it nothing more is read.
struct Reader {
  const json::object& object;
  std::string& error;
  const std::string path;

  template <class T>
  void operator()(std::string_view name, T& member) {
    if (!error.empty()) return;
    if (const json::value* found = object.if_contains(name); found != nullptr && !found->is_null()) {
      read(*found, member, path.empty() ? std::string(name) : path + '.' + std::string(name));
    }
  }

  void refuse(const std::string& where, std::string_view why) {
    if (error.empty()) error = where + ": " + std::string(why);
  }

  void read(const json::value& from, std::string& to, const std::string& where) {
    if (!from.is_string()) return refuse(where, "not a string");
    to = std::string(from.get_string());
  }
  void read(const json::value& from, bool& to, const std::string& where) {
    if (!from.is_bool()) return refuse(where, "neither true nor false");
    to = from.get_bool();
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void read(const json::value& from, T& to, const std::string& where) {
    boost::system::error_code failed;
    const T number = from.is_number() ? from.to_number<T>(failed) : T{};
    if (!from.is_number() || failed) return refuse(where, "not a whole number in range");
    to = number;
  }
  void read(const json::value& from, double& to, const std::string& where) {
    boost::system::error_code failed;
    const double number = from.is_number() ? from.to_number<double>(failed) : 0.0;
    if (!from.is_number() || failed) return refuse(where, "not a number");
    to = number;
  }
  void read(const json::value& from, Time& to, const std::string& where) {
    const auto parsed = from.is_string() ? parse_time_text(from.get_string()) : std::nullopt;
    if (!parsed) return refuse(where, "not a time like 2026-01-31T14:02:07Z");
    to = *parsed;
  }
  template <Id64 T>
  void read(const json::value& from, T& to, const std::string& where) {
    std::uint64_t number = 0;
    if (const auto* text = from.if_string(); text != nullptr) {
      const char* end = text->data() + text->size();
      const auto [stop, failed] = std::from_chars(text->data(), end, number);
      if (failed == std::errc{} && stop == end && !text->empty()) {
        to = T{number};
        return;
      }
    }
    refuse(where, "not a 64-bit number in a string");
  }
  template <class T>
  void read(const json::value& from, std::optional<T>& to, const std::string& where) {
    read(from, to.emplace(), where);
  }
  template <class T>
  void read(const json::value& from, std::vector<T>& to, const std::string& where) {
    if (!from.is_array()) return refuse(where, "not a list");
    to.clear();
    for (const auto& item : from.get_array()) {
      const std::string here = where + '[' + std::to_string(to.size()) + ']';  // before it grows
      read(item, to.emplace_back(), here);
      if (!error.empty()) return;
    }
  }
  template <class T>
    requires std::is_class_v<T>
  void read(const json::value& from, T& to, const std::string& where) {
    if (!from.is_object()) return refuse(where, "not an object");
    Reader inner{from.get_object(), error, where};
    describe(inner, to);
  }
};

template <class T>
concept HasSchema = requires { T::schema; };

template <class T>
std::string write_document(const T& document) {
  Writer writer;
  if constexpr (HasSchema<T>) writer.object.emplace("schema", T::schema);
  describe(writer, document);
  return json_text(json::value(std::move(writer.object)), 0);
}

template <class T>
std::string read_document(std::string_view text, T& out) {
  json::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed) return "not JSON: " + failed.message();
  if (!value.is_object()) return "not a JSON object";
  const json::object& object = value.get_object();
  if constexpr (HasSchema<T>) {
    const json::value* schema = object.if_contains("schema");
    if (schema == nullptr || !schema->is_string()) return "schema: missing, expected " + std::string(T::schema);
    if (std::string_view(schema->get_string()) != T::schema) {
      return "schema: is " + std::string(schema->get_string()) + ", expected " + std::string(T::schema);
    }
  }
  std::string error;
  Reader reader{object, error, ""};
  describe(reader, out);
  return error;
}

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::string to_json(const StatusDocument& document) { return write_document(document); }
std::string to_json(const NodesDocument& document) { return write_document(document); }
std::string to_json(const VersionsDocument& document) { return write_document(document); }
std::string to_json(const VersionDocument& document) { return write_document(document); }
std::string to_json(const RefitDocument& document) { return write_document(document); }
std::string to_json(const PublishRequest& request) { return write_document(request); }
std::string to_json(const PublishDocument& document) { return write_document(document); }
std::string to_json(const AbortRequest& request) { return write_document(request); }
std::string to_json(const AbortDocument& document) { return write_document(document); }
std::string to_json(const VerifyRequest& request) { return write_document(request); }
std::string to_json(const VerifyDocument& document) { return write_document(document); }
std::string to_json(const ErrorDocument& document) { return write_document(document); }

std::string from_json(std::string_view text, StatusDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, NodesDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, VersionsDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, VersionDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, RefitDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, PublishRequest& out) { return read_document(text, out); }
std::string from_json(std::string_view text, PublishDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, AbortRequest& out) { return read_document(text, out); }
std::string from_json(std::string_view text, AbortDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, VerifyRequest& out) { return read_document(text, out); }
std::string from_json(std::string_view text, VerifyDocument& out) { return read_document(text, out); }
std::string from_json(std::string_view text, ErrorDocument& out) { return read_document(text, out); }

std::string time_text(Time at) {
  using namespace std::chrono;
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss clock{at - day};
  std::array<char, 40> buffer{};
  int used = std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                           static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                           static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                           static_cast<int>(clock.seconds().count()));
  std::string text(buffer.data(), static_cast<std::size_t>(used));
  if (const auto fraction = clock.subseconds().count(); fraction != 0) {
    used = std::snprintf(buffer.data(), buffer.size(), ".%03d", static_cast<int>(fraction));
    text.append(buffer.data(), static_cast<std::size_t>(used));
  }
  return text + 'Z';
}

std::optional<Time> parse_time_text(std::string_view text) {
  using namespace std::chrono;
  const auto y = digits(text, 0, 4);
  const auto mo = digits(text, 5, 2);
  const auto d = digits(text, 8, 2);
  const auto h = digits(text, 11, 2);
  const auto mi = digits(text, 14, 2);
  const auto s = digits(text, 17, 2);
  if (!y || !mo || !d || !h || !mi || !s || text.size() < 20) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') return std::nullopt;
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)}, day{static_cast<unsigned>(*d)}};
  if (!date.ok() || *h > 23 || *mi > 59 || *s > 59) return std::nullopt;
  Time at = sys_days{date} + hours{*h} + minutes{*mi} + seconds{*s};
  if (text[19] == '.') {
    const auto fraction = digits(text, 20, 3);
    if (!fraction || text.substr(23) != "Z") return std::nullopt;
    return at + milliseconds{*fraction};
  }
  return text.substr(19) == "Z" ? std::optional(at) : std::nullopt;
}

std::string indented_json(std::string_view text) {
  json::error_code failed;
  const json::value value = json::parse(text, failed);
  return failed ? std::string(text) : json_text(value, 2) + '\n';
}

}  // namespace deltarelay::relay::admin
