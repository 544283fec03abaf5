// FrameEncoder and BlockDecoder: whatever two blocks hold, the new one comes back. Input: dtype, size (2 bytes), mode, then
// the blocks; in some modes the new block is the old one with small steps, so that every encoding has its turn.
#include "codec/frame.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::fuzz;

namespace {

void fill(MutableBytes out, Bytes from) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = from.empty() ? std::byte{0} : from[i % from.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto dtype = static_cast<DType>(input.byte() % dtype_count);
  const std::size_t block_bytes = 1 + input.below(20000);
  const std::uint8_t mode = input.byte();
  const ExactBuffer base(block_bytes), next(block_bytes), out(block_bytes);
  fill(base.bytes(), input.take(input.rest().size() / 2));
  if (mode % 4 == 0) {
    fill(next.bytes(), input.rest());
  } else {
    fill(next.bytes(), base.bytes());
    std::size_t at = 0;
    while (!input.rest().empty()) {
      at = (at + input.below(2000)) % block_bytes;
      next.bytes()[at] = static_cast<std::byte>(std::to_integer<unsigned>(next.bytes()[at]) + input.byte() % 4);
    }
  }

  FrameEncoder encoder;
  std::vector<EncodedFrame> frames;
  const Bytes old = mode % 16 == 15 ? Bytes{} : Bytes(base.bytes());
  const BlockInput block{{}, dtype, old, next.bytes()};
  encoder.encode({&block, 1}, frames);
  const bool same = !old.empty() && std::memcmp(base.bytes().data(), next.bytes().data(), block_bytes) == 0;
  promise(frames.empty() == same, "a frame is made for what changed, and for nothing else");
  if (frames.empty()) return 0;
  const auto view = FrameView::parse(frames[0].payload);
  promise(view.has_value() && view->entries.size() == 1, "what is encoded parses");
  promise(frames[0].payload.size() <= block_bytes + 64, "never larger than raw and a header");
  BlockDecoder decoder;
  promise(decoder.decode(view->entries[0], view->tables, dtype, old, out.bytes()).has_value(), "it decodes");
  promise(std::memcmp(out.bytes().data(), next.bytes().data(), block_bytes) == 0, "to the new block");
  return 0;
}
