// Constants of the class encoding that its two halves share. FORMAT.md, "class".
#pragma once

#include "codec/encoding/class_model.hpp"

namespace deltarelay::codec::class_format {

// The first byte of a block: log2 of the lanes, then the model.
inline constexpr unsigned lanes_bits = 3;
inline constexpr unsigned lanes_log2_max = 5;
static_assert(1u << lanes_log2_max == kernels::rans_lanes_max);
static_assert(class_models_max << lanes_bits <= 256);

}  // namespace deltarelay::codec::class_format
