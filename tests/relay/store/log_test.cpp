#include <doctest/doctest.h>
#include <stdlib.h>

#include "relay/store/log.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;

namespace {

codec::RecordPtr record(std::uint64_t sequence) {
  codec::RecordHeader header;
  header.type = codec::RecordType::frame;
  header.version = codec::Version{7};
  header.sequence = codec::Sequence{sequence};
  const std::vector<std::byte> payload(5 + sequence, static_cast<std::byte>(sequence));
  return codec::seal_record(header, payload, nullptr);
}

codec::RecordPtr read(RefitLog& log, std::uint64_t sequence) {
  auto got = log.read(codec::Version{7}, codec::StripeId{0}, codec::Sequence{sequence});
  return got ? *got : nullptr;
}

}  // namespace

TEST_SUITE("relay/store/log") {
TEST_CASE("a tail torn at any byte costs the torn record only, and the log goes on from there") {
  std::string directory = (std::filesystem::temp_directory_path() / "deltarelay-log-XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const auto first = record(0), second = record(1);
  const std::size_t whole = first->bytes.size() + second->bytes.size();
  for (std::size_t keep = first->bytes.size(); keep <= whole; ++keep) {
    std::filesystem::remove_all(directory);
    {
      auto log = RefitLog::open(directory, {.cache_bytes_max = 0});
      REQUIRE(log.has_value());
      for (const auto& r : {first, second}) {
        REQUIRE((*log)->publish(r).has_value());
        CHECK(read(**log, codec::raw(r->header.sequence)) == r);
        REQUIRE((*log)->write(r).has_value());
      }
      REQUIRE((*log)->sync().has_value());
      CHECK(read(**log, 1)->bytes == second->bytes);
    }
    std::filesystem::resize_file(directory + "/v7-s0-0.seg", keep);
    auto log = RefitLog::open(directory, {});
    REQUIRE(log.has_value());
    CHECK(read(**log, 0)->bytes == first->bytes);
    CHECK((read(**log, 1) != nullptr) == (keep == whole));
    CHECK((*log)->cuts().size() == (keep == whole || keep == first->bytes.size() ? 0 : 1));
    CHECK((*log)->publish(record(keep == whole ? 2 : 1)).has_value());
  }
  std::filesystem::remove_all(directory);
}
}
