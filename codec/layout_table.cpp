// The encoded tensor table (FORMAT.md, "Layout"), little-endian:
//
//   u32 block_bytes   u32 tensor_count
//   per tensor, names strictly rising:  u8 dtype   u8 zero   u16 rank   u32 name_bytes   name   rank x u64 dimension
//
// Sizes in bytes are not carried: they follow from dtype and shape, and what follows cannot contradict.
#include <algorithm>
#include <concepts>
#include <utility>

#include "codec/layout.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::size_t table_head_bytes = 8;
constexpr std::size_t entry_head_bytes = 8;

template <std::unsigned_integral T>
void put(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xff));
}

/// Takes fields off the front; the caller asks has() first.
class TableReader {
 public:
  explicit TableReader(Bytes in) : in_(in) {}

  [[nodiscard]] bool has(std::uint64_t bytes) const noexcept { return in_.size() >= bytes; }

  template <std::unsigned_integral T>
  [[nodiscard]] T take() noexcept {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(in_[i]) << (8 * i)));
    in_ = in_.subspan(sizeof(T));
    return value;
  }
  [[nodiscard]] std::string take_text(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::ranges::transform(in_.first(bytes), text.begin(), [](std::byte b) { return static_cast<char>(b); });
    in_ = in_.subspan(bytes);
    return text;
  }

 private:
  Bytes in_;
};

Result<TensorSpec> take_tensor(TableReader& in) {
  if (!in.has(entry_head_bytes)) return errc::truncated;
  const auto dtype = in.take<std::uint8_t>();
  const auto zero = in.take<std::uint8_t>();
  const auto rank = in.take<std::uint16_t>();
  const auto name_bytes = in.take<std::uint32_t>();
  if (zero != 0) return errc::reserved_not_zero;
  if (dtype >= dtype_count) return errc::dtype_unknown;
  if (!in.has(std::uint64_t{name_bytes} + std::uint64_t{rank} * 8)) return errc::truncated;
  TensorSpec tensor;
  tensor.dtype = static_cast<DType>(dtype);
  tensor.name = in.take_text(name_bytes);
  tensor.shape.reserve(rank);
  for (unsigned i = 0; i < rank; ++i) tensor.shape.push_back(in.take<std::uint64_t>());
  return tensor;
}

}  // namespace

std::vector<std::byte> Layout::encode() const {
  std::size_t bytes = table_head_bytes;
  for (const TensorSpec& tensor : tensors_) bytes += entry_head_bytes + tensor.name.size() + 8 * tensor.shape.size();
  std::vector<std::byte> out;
  out.reserve(bytes);
  put(out, block_bytes_);
  put(out, static_cast<std::uint32_t>(tensors_.size()));
  for (const TensorSpec& tensor : tensors_) {
    put(out, static_cast<std::uint8_t>(tensor.dtype));
    put(out, std::uint8_t{0});
    put(out, static_cast<std::uint16_t>(tensor.shape.size()));
    put(out, static_cast<std::uint32_t>(tensor.name.size()));
    const Bytes name = std::as_bytes(std::span{tensor.name});
    out.insert(out.end(), name.begin(), name.end());
    for (std::uint64_t dimension : tensor.shape) put(out, dimension);
  }
  return out;
}

Result<Layout> Layout::decode(Bytes in) {
  if (in.size() > table_payload_bytes_max) return errc::table_too_large;
  TableReader reader{in};
  if (!reader.has(table_head_bytes)) return errc::truncated;
  const auto block_bytes = reader.take<std::uint32_t>();
  const auto count = reader.take<std::uint32_t>();
  if (count > tensor_count_max) return errc::table_too_large;
  if (!reader.has(std::uint64_t{count} * entry_head_bytes)) return errc::truncated;
  std::vector<TensorSpec> tensors;
  tensors.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    auto tensor = take_tensor(reader);
    if (!tensor) return tensor.error();
    if (!tensors.empty() && tensors.back().name >= tensor->name) return errc::malformed_payload;
    tensors.push_back(std::move(*tensor));
  }
  if (reader.has(1)) return errc::trailing_bytes;
  return make(std::move(tensors), block_bytes);
}

}  // namespace deltarelay::codec
