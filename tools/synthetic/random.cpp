#include "tools/synthetic/random.hpp"

#include <span>
#include <string>

#include "codec/bytes.hpp"
#include "codec/digest.hpp"

namespace deltarelay::synthetic {

NumberStream::NumberStream(std::uint64_t seed, std::string_view purpose, std::string_view name) {
  std::string text = std::to_string(seed);
  text += '/';
  text += purpose;
  text += '/';
  text += name;
  key_ = codec::load_le<std::uint64_t>(codec::digest_of(std::as_bytes(std::span{text})).bytes.data());
}

}  // namespace deltarelay::synthetic
