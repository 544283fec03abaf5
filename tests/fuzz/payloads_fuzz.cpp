// Payload decoders: what one accepts, it writes again to the same bytes. The first byte picks the payload.
#include "codec/layout.hpp"
#include "codec/payloads.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace deltarelay::codec;
using deltarelay::fuzz::Input;
using deltarelay::fuzz::promise;

namespace {

template <class Payload>
void check(Bytes in) {
  const auto payload = Payload::decode(in);
  if (!payload) return;
  const std::vector<std::byte> again = payload->encode();
  promise(again.size() == in.size() && (in.empty() || std::memcmp(again.data(), in.data(), in.size()) == 0),
          "a payload has one form");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  switch (input.byte() % 5) {
    case 0: check<BeginPayload>(input.rest()); break;
    case 1: check<FilePayload>(input.rest()); break;
    case 2: check<EndPayload>(input.rest()); break;
    case 3: check<LayoutPayload>(input.rest()); break;
    default: check<Layout>(input.rest()); break;
  }
  return 0;
}
