// A whole refit: what is encoded from two checkpoints is what turns one into the other.
#include "codec/refit_encoder.hpp"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <stdexcept>

#include "codec/limits.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::tests;

namespace {

// A checkpoint in memory, and the next one: some tensors change, some do not.
struct Model {
  Layout layout;
  std::vector<std::vector<std::byte>> base, next;

  explicit Model(std::uint32_t block_bytes = 4096) : layout(make_layout(block_bytes)) {
    for (std::uint32_t i = 0; i < layout.tensors().size(); ++i) {
      const TensorSpec& tensor = layout.tensors()[i];
      BlockPair pair = scattered_block(element_width(tensor.dtype), tensor.bytes, i % 3 == 0 ? 0.0 : 0.02, i);
      base.push_back(std::move(pair.base));
      next.push_back(std::move(pair.next));
    }
  }
  static Layout make_layout(std::uint32_t block_bytes) {
    std::vector<TensorSpec> tensors;
    for (std::uint64_t i = 0; i < 90; ++i) tensors.push_back({"norm." + std::to_string(i), DType::F32, {16 + i}, 0});
    tensors.push_back({"embed", DType::BF16, {300, 128}, 0});
    tensors.push_back({"empty", DType::BF16, {0, 128}, 0});
    tensors.push_back({"head", DType::BF16, {301, 127}, 0});
    tensors.push_back({"scale", DType::F32, {}, 0});
    return Layout::make(std::move(tensors), block_bytes).value();
  }
  [[nodiscard]] BlockReader reader(const std::vector<std::vector<std::byte>>& content) const {
    return [this, &content](BlockId id, MutableBytes) -> Result<Bytes> {
      return Bytes(content[raw(id.tensor)]).subspan(layout.offset_of(id), layout.size_of(id));
    };
  }
  [[nodiscard]] std::vector<Digest> digests(const std::vector<std::vector<std::byte>>& content) const {
    std::vector<Digest> out;
    for (std::uint64_t i = 0; i < layout.block_count(); ++i) {
      out.push_back(digest_of(*reader(content)(layout.block_at(i), {})));
    }
    return out;
  }
  // The base with the frames applied, by tensor.
  [[nodiscard]] std::vector<std::vector<std::byte>> apply(const std::vector<EncodedFrame>& frames) const {
    auto out = base;
    BlockDecoder decoder;
    for (const EncodedFrame& frame : frames) {
      const auto view = FrameView::parse(frame.payload);
      REQUIRE(view.has_value());
      for (const FrameEntry& entry : view->entries) {
        const auto at = layout.offset_of(entry.id);
        const auto size = layout.size_of(entry.id);
        const Bytes old = Bytes(base[raw(entry.id.tensor)]).subspan(at, size);
        std::vector<std::byte> block(size);
        const DType dtype = layout.tensor(entry.id.tensor).dtype;
        REQUIRE(decoder.decode(entry, view->tables, dtype, old, block).has_value());
        std::copy(block.begin(), block.end(), out[raw(entry.id.tensor)].begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    return out;
  }
};

struct Collected {
  std::mutex mutex;
  std::vector<EncodedFrame> frames;
  FrameSink sink() {
    return [this](EncodedFrame&& frame) {
      const std::scoped_lock lock(mutex);
      frames.push_back(std::move(frame));
    };
  }
};

}  // namespace

TEST_SUITE("codec/refit_encoder") {
  TEST_CASE("applied to the base, the frames give the next checkpoint, on one thread and on three") {
    const Model model;
    for (const unsigned threads : {1u, 3u}) {
      Collected collected;
      RefitControl control;
      const auto result = encode_refit({model.layout, model.reader(model.base), model.reader(model.next), {}},
                                       {threads, 16}, control, collected.sink());
      REQUIRE(result.has_value());
      CHECK(model.apply(collected.frames) == model.next);
      CHECK(result->next_digests == model.digests(model.next));
      CHECK(result->base_digests == model.digests(model.base));
      CHECK(result->stats.blocks == model.layout.block_count());
      CHECK(result->frames == collected.frames.size());
      CHECK(control.done_blocks == model.layout.block_count());
      CHECK(control.done_bytes == model.layout.total_bytes());
      CHECK(control.changed_blocks == result->stats.changed_blocks);
      CHECK(result->stats.changed_blocks < model.layout.block_count());
    }
  }

  TEST_CASE("with the base's digests given, the base is not hashed and unchanged blocks keep theirs") {
    const Model model;
    auto digests = model.digests(model.base);
    Collected collected;
    RefitControl control;
    const auto result = encode_refit({model.layout, model.reader(model.base), model.reader(model.base), digests}, {},
                                     control, collected.sink());
    REQUIRE(result.has_value());
    CHECK(collected.frames.empty());
    CHECK(result->base_digests.empty());
    CHECK(result->next_digests == digests);
    CHECK(result->stats.changed_blocks == 0);
  }

  TEST_CASE("small tensors share frames; a frame never holds more blocks than it may") {
    const Model model;
    Collected collected;
    RefitControl control;
    REQUIRE(encode_refit({model.layout, {}, model.reader(model.next), {}}, {}, control, collected.sink()).has_value());
    std::size_t blocks = 0;
    for (const EncodedFrame& frame : collected.frames) {
      CHECK(frame.targets.size() <= frame_blocks_max);
      blocks += frame.targets.size();
    }
    CHECK(blocks == model.layout.block_count());
    CHECK(collected.frames.size() < model.layout.block_count() / 4);
    CHECK(model.apply(collected.frames) == model.next);
  }

  TEST_CASE("a reader may copy into the scratch memory that it is given") {
    const Model model;
    const BlockReader direct = model.reader(model.next);
    const BlockReader copying = [&](BlockId id, MutableBytes scratch) -> Result<Bytes> {
      const Bytes bytes = *direct(id, scratch);
      REQUIRE(scratch.size() >= bytes.size());
      std::copy(bytes.begin(), bytes.end(), scratch.begin());
      return Bytes(scratch).first(bytes.size());
    };
    Collected collected;
    RefitControl control;
    REQUIRE(encode_refit({model.layout, model.reader(model.base), copying, {}}, {2, 16}, control, collected.sink())
                .has_value());
    CHECK(model.apply(collected.frames) == model.next);
  }

  TEST_CASE("a reader's refusal ends the work and names the tensor") {
    const Model model;
    const BlockReader refusing = [&](BlockId id, MutableBytes) -> Result<Bytes> {
      if (model.layout.tensor(id.tensor).name == "head") return errc::io_error;
      return model.reader(model.next)(id, {});
    };
    RefitControl control;
    const auto result =
        encode_refit({model.layout, model.reader(model.base), refusing, {}}, {2, 16}, control, [](EncodedFrame&&) {});
    REQUIRE(result.has_error());
    CHECK(result.error().code == errc::io_error);
    CHECK(result.error().text().find("head") != std::string::npos);
  }

  TEST_CASE("cancelled from the sink, it stops and says so; an exception of the sink comes out") {
    const Model model;
    RefitControl control;
    const RefitInput input{model.layout, model.reader(model.base), model.reader(model.next), {}};
    const auto result = encode_refit(input, {2, 4}, control, [&](EncodedFrame&&) { control.cancel = true; });
    REQUIRE(result.has_error());
    CHECK(result.error().code == boost::system::errc::operation_canceled);
    CHECK(control.done_blocks < model.layout.block_count());

    RefitControl other;
    CHECK_THROWS_AS(
        (void)encode_refit(input, {2, 4}, other, [](EncodedFrame&&) { throw std::runtime_error("no room"); }),
        std::runtime_error);
  }
}
