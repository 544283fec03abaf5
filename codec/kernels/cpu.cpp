#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec::kernels {

CpuLevel cpu_level() noexcept {
#if defined(__x86_64__)
  static const CpuLevel level = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2 && avx512) return CpuLevel::avx512;
    return avx2 ? CpuLevel::avx2 : CpuLevel::portable;
  }();
  return level;
#else
  return CpuLevel::portable;
#endif
}

}  // namespace deltarelay::codec::kernels
