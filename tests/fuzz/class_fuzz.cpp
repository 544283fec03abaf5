// ClassDecoder: no tables and no block make it leave its buffers, what one block did is not felt by the next, and a
// block that decodes does so to the same bytes again. Input: width, elements (2 bytes), length of the tables (2 bytes),
// tables, block.
#include "codec/encoding/class_code.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const unsigned width = 1u << (input.byte() % 4);
  const std::size_t block_bytes = (1 + input.below(20000)) * width;
  const std::size_t tables_bytes = input.below(0x10000);
  const Bytes given_tables = input.take(tables_bytes), given_data = input.rest();
  const ExactBuffer tables(given_tables.size()), block(given_data.size());
  if (!given_tables.empty()) std::memcpy(tables.bytes().data(), given_tables.data(), given_tables.size());
  if (!given_data.empty()) std::memcpy(block.bytes().data(), given_data.data(), given_data.size());

  const ExactBuffer base(block_bytes), first(block_bytes), second(block_bytes);
  for (std::size_t i = 0; i < block_bytes; ++i) base.bytes()[i] = static_cast<std::byte>(i * 131 + (i >> 8));
  static ClassDecoder used;
  ClassDecoder fresh;
  const auto decoded = used.decode(block.bytes(), tables.bytes(), width, base.bytes(), first.bytes());
  const auto again = fresh.decode(block.bytes(), tables.bytes(), width, base.bytes(), second.bytes());
  promise(decoded.has_value() == again.has_value(), "decoding depends on the block alone");
  promise(decoded || decoded.error() == again.error(), "the reason too");
  promise(!decoded || std::memcmp(first.bytes().data(), second.bytes().data(), block_bytes) == 0,
          "decoding gives one result");
  return 0;
}
