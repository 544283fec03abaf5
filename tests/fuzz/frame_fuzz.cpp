// FrameView and BlockDecoder: no payload makes them leave their buffers, a payload that parses is built again to the same
// bytes, and decoding twice gives the same. Input: dtype, block size (2 bytes), whether there is a base, payload.
#include "codec/frame.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto dtype = static_cast<DType>(input.byte() % dtype_count);
  const std::size_t block_bytes = 1 + input.below(5000);
  const bool has_base = input.byte() % 8 != 0;
  const auto view = FrameView::parse(input.rest());
  if (!view) return 0;
  const std::vector<std::byte> again = build_frame(view->tables, view->entries);
  promise(again.size() == input.rest().size() && std::memcmp(again.data(), input.rest().data(), again.size()) == 0,
          "a frame has one form");

  const ExactBuffer base(block_bytes), first(block_bytes), second(block_bytes);
  for (std::size_t i = 0; i < block_bytes; ++i) base.bytes()[i] = static_cast<std::byte>(i * 131 + (i >> 8));
  BlockDecoder decoder, other;
  for (const FrameEntry& entry : view->entries) {
    const Bytes old = has_base ? Bytes(base.bytes()) : Bytes{};
    const auto decoded = decoder.decode(entry, view->tables, dtype, old, first.bytes());
    const auto twice = other.decode(entry, view->tables, dtype, old, second.bytes());
    promise(decoded.has_value() == twice.has_value(), "decoding depends on the block alone");
    promise(!decoded || std::memcmp(first.bytes().data(), second.bytes().data(), block_bytes) == 0,
            "decoding gives one result");
    promise(!decoded || *decoded == digest_of(Bytes(first.bytes())), "the digest is that of the result");
    promise(decoded || has_base || !needs_base(entry.encoding) || decoded.error() == errc::base_required,
            "a missing base is named");
  }
  return 0;
}
