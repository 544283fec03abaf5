// One safetensors file: its header, parsed strictly by the reference's rules, and written as the reference writes it.
//
//   0          8                    8 + N                               file end
//   | u64le N  | N bytes of JSON    | data section: every byte owned by exactly one tensor |
//
// Where the reference's documents and its code disagree (null __metadata__, white space before the brace, doubled keys,
// an entry or dtype in a form that only its deserialiser takes), the file is refused: see checkpoint.hpp.
// Pure functions; no I/O; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/errc.hpp"
#include "codec/layout.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

inline constexpr std::size_t safetensors_prefix_bytes = 8;

struct SafetensorsEntry {
  TensorSpec spec;
  std::uint64_t begin = 0;  ///< relative to the data section; the end is begin + spec.bytes
};

struct SafetensorsHeader {
  std::uint64_t header_bytes = 0;         ///< 8 + N: the data section begins here
  std::vector<SafetensorsEntry> tensors;  ///< in the order of their bytes
};

/// 8 + N from the first bytes of a file of `file_bytes`. Errors: header_too_small, header_too_large.
[[nodiscard]] Checked<std::uint64_t> safetensors_header_bytes(Bytes prefix, std::uint64_t file_bytes);

/// Parses the first 8 + N bytes of a file of `file_bytes`; the tensors fill the rest exactly, or the file is refused.
/// The failure names the tensor in `why`; `where` is for the caller, who knows the path.
[[nodiscard]] Checked<SafetensorsHeader> parse_safetensors_header(Bytes head, std::uint64_t file_bytes);

/// The first 8 + N bytes of a file that holds `tensors` in this order without gaps; padded with spaces so that the data
/// begins at a multiple of 8. REQUIRES names unique and valid UTF-8, `bytes` set.
[[nodiscard]] std::vector<std::byte> make_safetensors_header(std::span<const TensorSpec> tensors);

}  // namespace deltarelay::codec
