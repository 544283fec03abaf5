// What is the maximum? Every bound that a peer, a file or an operator could push against, and how the bounds relate.
//
// Sizes are bytes unless the name says otherwise. A value past its bound is refused by name, never clamped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deltarelay::codec {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;
inline constexpr std::uint64_t gib = 1024ull * mib;

/// Block size by default, and the range a mesh may choose from (powers of two).
inline constexpr std::size_t block_bytes_default = 1 * mib;
inline constexpr std::size_t block_bytes_min = 4 * kib;
inline constexpr std::size_t block_bytes_max = 4 * mib;

/// A FRAME's payload. The encoder starts a new frame near `frame_payload_bytes_target`; one incompressible block of the
/// largest size must still fit.
inline constexpr std::size_t frame_payload_bytes_target = 1 * mib;
inline constexpr std::size_t frame_payload_bytes_max = 6 * mib;
inline constexpr std::size_t frame_blocks_max = 64;
static_assert(frame_payload_bytes_max > block_bytes_max + 64 * kib);

/// LAYOUT and BEGIN carry the tensor table; FILE carries one small file.
inline constexpr std::size_t table_payload_bytes_max = 64 * mib;
inline constexpr std::size_t file_payload_bytes_max = 32 * mib;
inline constexpr std::size_t record_payload_bytes_max = table_payload_bytes_max;
static_assert(record_payload_bytes_max >= frame_payload_bytes_max && record_payload_bytes_max >= file_payload_bytes_max);

/// The reference reader's own limit on a safetensors header.
inline constexpr std::size_t safetensors_header_bytes_max = 100'000'000;
inline constexpr std::size_t index_json_bytes_max = 100'000'000;
/// As deep as the reference's JSON reader goes.
inline constexpr std::size_t json_depth_max = 127;
inline constexpr std::size_t tensor_count_max = 4'000'000;
inline constexpr std::size_t shard_count_max = 100'000;
/// The reference has no limit; ours is what the 16-bit count on the wire holds.
inline constexpr std::size_t tensor_rank_max = 65'535;
/// Small files beside the shards that travel with a version.
inline constexpr std::size_t companion_count_max = 10'000;

}  // namespace deltarelay::codec
