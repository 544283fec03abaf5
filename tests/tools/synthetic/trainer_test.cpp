// Training steps: the rate that was asked for, the statistics of small steps on FP32 masters, and bits that no step may touch.
#include "tools/synthetic/trainer.hpp"

#include <cmath>

#include "codec/limits.hpp"
#include "tests/tools/synthetic/scratch.hpp"
#include "tools/synthetic/float_format.hpp"
#include "tools/synthetic/generator.hpp"
#include "tools/synthetic/staged_output.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::DType;
using codec::kib;
using codec::mib;
using tests::elements_of_tensor;
using tests::open_map;
using tests::same_content;
using tests::Scratch;

void make(const std::filesystem::path& path, std::uint64_t bytes, std::uint64_t seed = 1) {
  const auto made = make_checkpoint(path, {.bytes = bytes, .seed = seed, .threads = 2});
  if (!made) FAIL(made.error().text());
}

StepReport step(const std::filesystem::path& from, const std::filesystem::path& to, const StepOptions& options) {
  const auto made = step_checkpoint(from, to, options);
  if (!made) FAIL(made.error().text());
  return *made;
}

/// Counted from the files, not believed from the report.
std::uint64_t changed_elements(const std::filesystem::path& a, const std::filesystem::path& b) {
  const codec::CheckpointMap left = open_map(a), right = open_map(b);
  std::uint64_t changed = 0;
  for (std::uint32_t i = 0; i < left.layout().tensors().size(); ++i) {
    const codec::Bytes old = left.tensor(codec::TensorIndex{i}), now = right.tensor(codec::TensorIndex{i});
    const std::size_t width = codec::element_width(left.layout().tensors()[i].dtype);
    for (std::size_t at = 0; at < old.size(); at += width)
      changed += !std::ranges::equal(old.subspan(at, width), now.subspan(at, width));
  }
  return changed;
}

double share_of_exponent(const StepCounts& counts, int exponent) {
  const auto i = static_cast<std::size_t>(exponent + 127);
  REQUIRE(counts.exponent_elements[i] > 1000);
  return static_cast<double>(counts.exponent_changed[i]) / static_cast<double>(counts.exponent_elements[i]);
}

TEST_SUITE("tools/synthetic/trainer") {
  TEST_CASE("the share that was asked for changes, to within 2 percent of it, and is counted truly") {
    const Scratch dir;
    make(dir / "base", 16 * mib);
    for (const double change : {0.01, 0.03, 0.05, 0.3}) {
      CAPTURE(change);
      const StepReport report = step(dir / "base", dir / "next", {.change = change, .seed = 2, .threads = 2});
      const std::uint64_t changed = changed_elements(dir / "base", dir / "next");
      CHECK(report.counts.changed == changed);
      CHECK(static_cast<double>(changed) / static_cast<double>(report.counts.elements) ==
            doctest::Approx(change).epsilon(0.02));
      std::filesystem::remove_all(dir / "next");
      std::filesystem::remove_all(dir / "next.masters");
    }
  }

  TEST_CASE("without kept masters the rate is as true") {
    const Scratch dir;
    make(dir / "base", 16 * mib);
    std::filesystem::remove_all(dir / "base.masters");
    const StepReport report = step(dir / "base", dir / "next", {.change = 0.03, .seed = 2, .keep_masters = false});
    CHECK_FALSE(report.masters_were_kept);
    CHECK_FALSE(std::filesystem::exists(dir / "next.masters"));
    CHECK(static_cast<double>(changed_elements(dir / "base", dir / "next")) /
              static_cast<double>(report.counts.elements) ==
          doctest::Approx(0.03).epsilon(0.02));
  }

  TEST_CASE("changes look like those of training: mostly one step, and small weights far more often than large ones") {
    const Scratch dir;
    make(dir / "base", 16 * mib);
    const StepCounts counts = step(dir / "base", dir / "next", {.change = 0.03, .seed = 2, .threads = 2}).counts;
    // A laboratory model under Adam-like steps gave: 90 % by one, 4 to 6 % by two, 2 to 3 % by more than seven.
    const auto part = [&](std::size_t i) {
      return static_cast<double>(counts.by_distance[i]) / static_cast<double>(counts.narrow_changed);
    };
    CHECK(part(0) > 0.85);
    CHECK(part(0) < 0.95);
    CHECK(part(1) > 0.03);
    CHECK(part(1) < 0.07);
    CHECK(part(3) < 0.04);
    CHECK(part(0) + part(1) + part(2) + part(3) == doctest::Approx(1));
    // 2^-12 37 %, 2^-9 5.5 %, 2^-6 0.7 %, each exponent half of the one below.
    CHECK(share_of_exponent(counts, -12) == doctest::Approx(0.37).epsilon(0.2));
    CHECK(share_of_exponent(counts, -9) == doctest::Approx(0.055).epsilon(0.35));
    CHECK(share_of_exponent(counts, -6) == doctest::Approx(0.007).epsilon(0.35));
    for (int exponent = -10; exponent < -6; ++exponent)
      CHECK(share_of_exponent(counts, exponent + 1) / share_of_exponent(counts, exponent) ==
            doctest::Approx(0.5).epsilon(0.1));
  }

  TEST_CASE("the result depends on the source and the seed, not on threads, shards or kept files") {
    const Scratch dir;
    make(dir / "base", 4 * mib);
    step(dir / "base", dir / "a", {.change = 0.03, .seed = 9});
    step(dir / "base", dir / "b", {.change = 0.03, .seed = 9, .shards = 5, .threads = 3, .keep_masters = false});
    step(dir / "base", dir / "c", {.change = 0.03, .seed = 10});
    CHECK(open_map(dir / "b").checkpoint().shards().size() == 5);
    CHECK(same_content(dir / "a", dir / "b"));
    CHECK_FALSE(same_content(dir / "a", dir / "c"));
    CHECK(open_map(dir / "a").checkpoint().companions() == std::vector<std::string>{"config.json"});
  }

  TEST_CASE("masters go on from step to step: they move by no more than the update, and round to what is stored") {
    const Scratch dir;
    make(dir / "v0", 1 * mib);
    step(dir / "v0", dir / "v1", {.change = 0.03, .seed = 1});
    const StepReport report = step(dir / "v1", dir / "v2", {.change = 0.03, .seed = 2});
    CHECK(report.masters_were_kept);
    const auto name = "model.layers.0.self_attn.q_proj.weight";
    const auto before = elements_of_tensor<std::uint32_t>(open_map(dir / "v1.masters"), name);
    const auto after = elements_of_tensor<std::uint32_t>(open_map(dir / "v2.masters"), name);
    const auto stored = elements_of_tensor<std::uint16_t>(open_map(dir / "v2"), name);
    std::size_t moved = 0, too_far = 0, wrong = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const auto was = std::bit_cast<float>(before[i]), is = std::bit_cast<float>(after[i]);
      moved += was != is;
      // Three standard deviations, and the rounding of the sum.
      too_far += std::abs(is - was) > 3.0F * report.update_size + std::abs(is) * 0x1p-23F;
      wrong += Bf16::round(is) != stored[i];
    }
    CHECK(moved > after.size() * 9 / 10);
    CHECK(too_far == 0);
    CHECK(wrong == 0);
  }

  TEST_CASE("masters of another checkpoint are refused, by tensor, and nothing is left behind") {
    const Scratch dir;
    make(dir / "a", 256 * kib, 1);
    make(dir / "b", 256 * kib, 2);
    std::filesystem::remove_all(dir / "a.masters");
    std::filesystem::rename(dir / "b.masters", dir / "a.masters");
    const auto refused = step_checkpoint(dir / "a", dir / "next", {.change = 0.03, .seed = 1});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == codec::errc::base_digest_mismatch);
    CHECK(refused.error().text().find("model.") != std::string::npos);
    CHECK(dir.entries() == 3);  // a, a.masters, b
  }

  TEST_CASE("masters of another shape are refused") {
    const Scratch dir;
    make(dir / "a", 256 * kib);
    make(dir / "b", 512 * kib);
    std::filesystem::remove_all(dir / "a.masters");
    std::filesystem::rename(dir / "b.masters", dir / "a.masters");
    const auto refused = step_checkpoint(dir / "a", dir / "next", {.change = 0.03, .seed = 1});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == codec::errc::tensor_size_mismatch);
  }

  TEST_CASE("NaN payloads, infinities and signed zeros keep their bits while the weights around them change") {
    const Scratch dir;
    std::vector<std::uint16_t> patterns;
    for (unsigned bits = 0; bits < 0x10000; ++bits) patterns.push_back(static_cast<std::uint16_t>(bits));
    for (const DType dtype : {DType::BF16, DType::F16}) {
      const unsigned infinity = dtype == DType::BF16 ? unsigned{Bf16::infinity} : unsigned{F16::infinity};
      tests::write_tensor(dir / "base", dtype, patterns);
      step(dir / "base", dir / "v1", {.change = 0.4, .seed = 1});
      step(dir / "v1", dir / "v2", {.change = 0.4, .seed = 2});  // once more, from kept masters
      for (const char* version : {"v1", "v2"}) {
        const auto now = elements_of_tensor<std::uint16_t>(open_map(dir / version), "w");
        std::size_t touched = 0, changed = 0, made_infinite = 0;
        for (std::size_t i = 0; i < now.size(); ++i) {
          const std::size_t magnitude = i & 0x7fff;
          const bool special = magnitude == 0 || magnitude >= infinity;
          touched += special && now[i] != i;
          changed += now[i] != i;
          made_infinite += !special && (now[i] & 0x7fffu) >= infinity;
        }
        CHECK(touched == 0);
        CHECK(made_infinite == 0);
        CHECK(changed > now.size() / 4);
      }
      for (const char* name : {"base", "v1", "v2", "v1.masters", "v2.masters"}) std::filesystem::remove_all(dir / name);
    }
  }

  TEST_CASE("F32 specials keep their bits, too") {
    const Scratch dir;
    const std::vector<std::uint32_t> specials{0x7f800001u, 0xffc12345u, 0x7f800000u, 0xff800000u, 0x80000000u, 0u};
    std::vector<std::uint32_t> patterns = specials;
    patterns.resize(1000, 0x3f800000u);
    tests::write_tensor(dir / "base", DType::F32, patterns);
    const StepReport report = step(dir / "base", dir / "next", {.change = 0.5, .seed = 1});
    const auto now = elements_of_tensor<std::uint32_t>(open_map(dir / "next"), "w");
    for (std::size_t i = 0; i < specials.size(); ++i) CHECK(now[i] == specials[i]);
    CHECK(report.counts.changed == doctest::Approx(500).epsilon(0.02));
    CHECK_FALSE(std::filesystem::exists(dir / "next.masters"));  // it is its own master
  }

  TEST_CASE("no change asked for is none made; more than can change is refused") {
    const Scratch dir;
    make(dir / "base", 256 * kib);
    CHECK(step(dir / "base", dir / "same", {.change = 0, .seed = 1}).counts.changed == 0);
    CHECK(same_content(dir / "base", dir / "same"));

    tests::write_tensor(dir / "whole", DType::I64, std::vector<std::uint64_t>(1000, 42));
    const auto refused = step_checkpoint(dir / "whole", dir / "next", {.change = 0.5, .seed = 1});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == boost::system::errc::invalid_argument);
    CHECK_FALSE(std::filesystem::exists(dir / "next"));
    CHECK(step(dir / "whole", dir / "copy", {.change = 0, .seed = 1}).counts.elements == 1000);
    CHECK(same_content(dir / "whole", dir / "copy"));
  }
}

}  // namespace
}  // namespace deltarelay::synthetic
