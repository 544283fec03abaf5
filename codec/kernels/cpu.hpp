// Which vector kernels this processor runs. Asked once; every kernel has a portable form that gives the same bits.
#pragma once

namespace deltarelay::codec::kernels {

enum class CpuLevel {
  portable,
  avx2,    ///< AVX2, BMI1, BMI2
  avx512,  ///< avx2 and AVX-512 F, BW, DQ, VL
};

[[nodiscard]] CpuLevel cpu_level() noexcept;

// A hot loop in plain C++ is compiled twice, for every processor and with AVX2 and BMI, from one source: mark the loop
// DELTARELAY_HOT so that it is inlined into its caller, and call it from a lambda, also marked, through on_this_cpu().
// Bit counting alone gains a factor of ten: without BMI it is a call into the compiler's library.
#define DELTARELAY_HOT __attribute__((always_inline))

#if defined(__x86_64__)
template <class Body>
__attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt"))) auto run_with_avx2(const Body& body) {
  return body();
}
#endif

template <class Body>
auto on_this_cpu(const Body& body) {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::avx2) return run_with_avx2(body);
#endif
  return body();
}

}  // namespace deltarelay::codec::kernels
