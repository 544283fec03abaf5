// Layouts in words: how names and differences are shown to an operator.
#include <utility>

#include "codec/layout.hpp"
#include "codec/utf8.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::size_t shown_name_bytes_max = 160;

void append_escaped(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_bytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    // C1 controls (U+0080 to U+009F) drive terminals as C0 does.
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || first < 0x20 || first == 0x7f || c1) {
      out += "\\x";
      out += digits[first >> 4];
      out += digits[first & 15];
      text.remove_prefix(1);
      continue;
    }
    if (first == '"' || first == '\\') out += '\\';
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
}

std::string shape_text(const TensorSpec& tensor) {
  std::string out = "[";
  for (std::uint64_t dimension : tensor.shape) {
    if (out.size() > 1) out += ',';
    out += std::to_string(dimension);
  }
  return out + "]";
}

std::string entry_difference(const TensorSpec& here, const TensorSpec& there) {
  std::string out = display_name(here.name) + ": ";
  if (here.dtype != there.dtype)
    out += "dtype " + std::string(dtype_name(here.dtype)) + " here, " + std::string(dtype_name(there.dtype)) + " there";
  if (here.shape != there.shape) {
    if (here.dtype != there.dtype) out += "; ";
    out += "shape " + shape_text(here) + " here, " + shape_text(there) + " there";
  }
  return out;
}

/// Collects sentences up to a number and counts what is past it.
class Sentences {
 public:
  explicit Sentences(std::size_t max) : max_(max) {}
  template <class Make>
  void add(Make&& make) {
    if (list_.size() < max_)
      list_.push_back(make());
    else
      ++more_;
  }
  [[nodiscard]] std::vector<std::string> finish() && {
    if (more_ > 0) list_.push_back("and " + std::to_string(more_) + " more");
    return std::move(list_);
  }

 private:
  std::size_t max_, more_ = 0;
  std::vector<std::string> list_;
};

}  // namespace

std::string display_name(std::string_view name) {
  std::string out = "\"";
  if (name.size() <= shown_name_bytes_max) {
    append_escaped(out, name);
  } else {
    append_escaped(out, name.substr(0, shown_name_bytes_max / 2));
    out += "…";
    append_escaped(out, name.substr(name.size() - shown_name_bytes_max / 4));
  }
  return out + "\"";
}

std::vector<std::string> describe_difference(const Layout& here, const Layout& there, std::size_t max) {
  Sentences out{max};
  if (here.block_bytes() != there.block_bytes())
    out.add([&] {
      return "block size " + std::to_string(here.block_bytes()) + " here, " + std::to_string(there.block_bytes()) +
             " there";
    });
  auto a = here.tensors().begin(), b = there.tensors().begin();
  const auto a_end = here.tensors().end(), b_end = there.tensors().end();
  while (a != a_end || b != b_end) {
    if (b == b_end || (a != a_end && a->name < b->name)) {
      out.add([&] { return "missing: " + display_name(a->name); });
      ++a;
    } else if (a == a_end || b->name < a->name) {
      out.add([&] { return "unexpected: " + display_name(b->name); });
      ++b;
    } else {
      if (*a != *b) out.add([&] { return entry_difference(*a, *b); });
      ++a, ++b;
    }
  }
  return std::move(out).finish();
}

}  // namespace deltarelay::codec
