// Made checkpoints: what is in them, that they are the same whoever makes them, and that half of one is never there.
#include "tools/synthetic/generator.hpp"

#include <algorithm>
#include <fstream>
#include <set>

#include "codec/limits.hpp"
#include "tests/tools/synthetic/scratch.hpp"
#include "tools/synthetic/float_format.hpp"
#include "tools/synthetic/staged_output.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::DType;
using codec::kib;
using codec::mib;
using tests::open_map;
using tests::same_content;
using tests::Scratch;

TEST_SUITE("tools/synthetic/generator") {
  TEST_CASE("a model has the size that was asked for, to within a row of the vocabulary") {
    for (const std::uint64_t bytes :
         {64 * kib, 1 * mib, 16 * mib, 256 * mib, std::size_t{16} << 30, std::size_t{2} << 40}) {
      for (const DType dtype : {DType::BF16, DType::F16, DType::F32}) {
        CAPTURE(bytes);
        const Model model = design_model(bytes, dtype);
        std::uint64_t sum = 0;
        for (const ModelTensor& tensor : model.tensors) sum += tensor.spec.bytes;
        CHECK(sum == model.bytes);
        const double off = static_cast<double>(model.bytes) - static_cast<double>(bytes);
        CHECK(std::abs(off) <= 2.0 * static_cast<double>(model.hidden * codec::element_width(dtype)));
      }
    }
  }

  TEST_CASE("shards hold every tensor once, whatever their number") {
    const Model model = design_model(1 * mib, DType::BF16);
    std::vector<codec::TensorSpec> specs;
    for (const ModelTensor& tensor : model.tensors) specs.push_back(tensor.spec);
    for (std::size_t count = 1; count <= specs.size(); ++count) {
      const std::vector<ShardPlan> plan = plan_shards(specs, count);
      CHECK(plan.size() == count);
      std::set<std::string> names, files;
      for (const ShardPlan& shard : plan) {
        CHECK(!shard.tensors.empty());
        files.insert(shard.name);
        for (const codec::TensorSpec& tensor : shard.tensors) CHECK(names.insert(tensor.name).second);
      }
      CHECK(names.size() == specs.size());
      CHECK(files.size() == count);
    }
  }

  TEST_CASE("same seed, same bytes, whatever the threads and shards; another seed, other bytes") {
    const Scratch dir;
    REQUIRE(make_checkpoint(dir / "a", {.bytes = 4 * mib, .seed = 5, .shards = 1}).has_value());
    REQUIRE(make_checkpoint(dir / "b", {.bytes = 4 * mib, .seed = 5, .shards = 7, .threads = 3}).has_value());
    REQUIRE(make_checkpoint(dir / "c", {.bytes = 4 * mib, .seed = 6}).has_value());
    CHECK(open_map(dir / "b").checkpoint().shards().size() == 7);
    CHECK(same_content(dir / "a", dir / "b"));
    CHECK(same_content(dir / "a.masters", dir / "b.masters"));
    CHECK_FALSE(same_content(dir / "a", dir / "c"));
  }

  TEST_CASE("it has what loaders stumble over: two dtypes, a scalar, a tensor without bytes, a companion") {
    const Scratch dir;
    REQUIRE(make_checkpoint(dir / "a", {.bytes = 1 * mib, .seed = 1}).has_value());
    const codec::CheckpointMap map = open_map(dir / "a");
    std::set<DType> dtypes;
    std::size_t scalars = 0, empty = 0;
    for (const codec::TensorSpec& tensor : map.layout().tensors()) {
      dtypes.insert(tensor.dtype);
      scalars += tensor.shape.empty();
      empty += tensor.bytes == 0;
    }
    CHECK(dtypes == std::set<DType>{DType::BF16, DType::F32});
    CHECK(scalars == 1);
    CHECK(empty == 1);
    CHECK(map.checkpoint().companions() == std::vector<std::string>{"config.json"});
    CHECK(map.checkpoint().has_index());
    CHECK(map.checkpoint().ignored_files().empty());
  }

  TEST_CASE("stored values are the masters, rounded") {
    const Scratch dir;
    for (const DType dtype : {DType::BF16, DType::F16}) {
      const auto target = dir / std::string(codec::dtype_name(dtype)).c_str();
      REQUIRE(make_checkpoint(target, {.bytes = 256 * kib, .seed = 1, .dtype = dtype}).has_value());
      const auto name = "model.layers.0.mlp.up_proj.weight";
      const auto stored = tests::elements_of_tensor<std::uint16_t>(open_map(target), name);
      const auto masters = tests::elements_of_tensor<std::uint32_t>(open_map(masters_path(target)), name);
      REQUIRE(stored.size() == masters.size());
      std::size_t wrong = 0, off_grid = 0;
      with_format(dtype, [&]<class Format>(Format) {
        if constexpr (sizeof(typename Format::Bits) == 2) {
          for (std::size_t i = 0; i < stored.size(); ++i) {
            const auto master = std::bit_cast<float>(masters[i]);
            wrong += Format::round(master) != stored[i];
            off_grid += Format::widen(stored[i]) != master;
          }
        }
      });
      CHECK(wrong == 0);
      CHECK(off_grid > stored.size() * 9 / 10);
    }
  }

  TEST_CASE("a directory that is not empty is refused and left alone; an empty one is taken") {
    const Scratch dir;
    std::filesystem::create_directory(dir / "full");
    std::ofstream(dir / "full" / "mine") << "text";
    const auto refused = make_checkpoint(dir / "full", {.bytes = 64 * kib, .seed = 1});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == boost::system::errc::file_exists);
    CHECK(std::distance(std::filesystem::directory_iterator(dir / "full"), {}) == 1);
    CHECK(dir.entries() == 1);

    std::filesystem::create_directory(dir / "empty");
    CHECK(make_checkpoint(dir / "empty/", {.bytes = 64 * kib, .seed = 1}).has_value());
    CHECK(open_map(dir / "empty").layout().total_bytes() > 0);
    CHECK(dir.entries() == 3);  // full, empty, empty.masters
  }

  TEST_CASE("masters of an earlier checkpoint are never taken for the new one's") {
    const Scratch dir;
    REQUIRE(make_checkpoint(dir / "a", {.bytes = 64 * kib, .seed = 1}).has_value());
    std::filesystem::remove_all(dir / "a");
    const auto refused = make_checkpoint(dir / "a", {.bytes = 64 * kib, .seed = 2, .keep_masters = false});
    REQUIRE(refused.has_error());
    CHECK(refused.error().where.ends_with("a.masters"));
    CHECK(dir.entries() == 1);
  }

  TEST_CASE("more shards than tensors are refused before anything is written") {
    const Scratch dir;
    const auto refused = make_checkpoint(dir / "a", {.bytes = 64 * kib, .seed = 1, .shards = 5000});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == boost::system::errc::invalid_argument);
    CHECK(dir.entries() == 0);
  }
}

}  // namespace
}  // namespace deltarelay::synthetic
