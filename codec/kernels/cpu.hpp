// Which vector kernels this processor runs. Asked once; every kernel has a portable form that gives the same bits.
#pragma once

namespace deltarelay::codec::kernels {

enum class CpuLevel {
  portable,
  avx2,    ///< AVX2, BMI1, BMI2
  avx512,  ///< avx2 and AVX-512 F, BW, DQ, VL
};

[[nodiscard]] CpuLevel cpu_level() noexcept;

}  // namespace deltarelay::codec::kernels
