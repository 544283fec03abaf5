// See json_text.hpp.
#include "relay/admin/json_text.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

namespace deltarelay::relay::admin {
namespace {

namespace json = boost::json;

class Printer {
 public:
  explicit Printer(int indent) : indent_(indent) {}

  void put(const json::value& value) {
    switch (value.kind()) {
      case json::kind::object: put_object(value.get_object()); break;
      case json::kind::array: put_array(value.get_array()); break;
      case json::kind::double_: put_double(value.get_double()); break;
      default: text_ += json::serialize(value); break;
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void put_double(double number) {
    // fmt's shortest form that reads back to the same double.
    text_ += std::isfinite(number) ? fmt::format("{}", number) : "null";
  }

  void put_object(const json::object& object) {
    if (object.empty()) {
      text_ += "{}";
      return;
    }
    text_ += '{';
    ++depth_;
    bool first = true;
    for (const auto& member : object) {
      next(first);
      text_ += json::serialize(json::string(member.key()));
      text_ += indent_ > 0 ? ": " : ":";
      put(member.value());
    }
    --depth_;
    line();
    text_ += '}';
  }

  void put_array(const json::array& array) {
    if (array.empty()) {
      text_ += "[]";
      return;
    }
    text_ += '[';
    ++depth_;
    bool first = true;
    for (const auto& item : array) {
      next(first);
      put(item);
    }
    --depth_;
    line();
    text_ += ']';
  }

  void next(bool& first) {
    if (!first) text_ += ',';
    first = false;
    line();
  }

  void line() {
    if (indent_ == 0) return;
    text_ += '\n';
    text_.append(static_cast<std::size_t>(depth_ * indent_), ' ');
  }

  int indent_;
  int depth_ = 0;
  std::string text_;
};

}  // namespace

std::string json_text(const boost::json::value& value, int indent) {
  Printer printer(indent);
  printer.put(value);
  return printer.take();
}

}  // namespace deltarelay::relay::admin
