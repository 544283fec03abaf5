// Numbers with units: the plain decimal meaning, or a refusal that says why.
#include "config/units.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <random>

using namespace deltarelay::config;
using deltarelay::topology::Address;
using deltarelay::topology::Rate;
using namespace std::chrono_literals;

namespace {

/// The reason of a refusal; fails the test if the text was taken.
template <class T>
std::string why(const Parsed<T>& parsed) {
  return parsed ? std::string("was taken") : parsed.error().why;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("config/units") {
  TEST_CASE("C63: a count is a plain decimal number and nothing else") {
    CHECK(parse_count("0").value() == 0);
    CHECK(parse_count("5").value() == 5);
    CHECK(parse_count("256").value() == 256);
    CHECK(parse_count("18446744073709551615").value() == std::numeric_limits<std::uint64_t>::max());
    for (const std::string text : {"", "08443", "0644", "0x1F", "1e3", "-1", "+1", "7443.0", "1_000", "1,000", " 1",
                                   "1 ", "1k", "٣", "one", "0b11", "1.", "18446744073709551616"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_count(text).has_value());
    }
    CHECK(why(parse_count("0010")) == "has a leading zero; write it without");
    CHECK(why(parse_count("18446744073709551616")) == "is too large");
    CHECK(why(parse_count("7443.0")) == "is not a whole decimal number");
  }

  TEST_CASE("a duration needs its unit, and its units stand from large to small") {
    struct Case {
      const char* text;
      std::chrono::nanoseconds value;
    };
    constexpr std::array cases{
        Case{"0", 0ns},           Case{"0s", 0ns},       Case{"1ns", 1ns},
        Case{"7us", 7us},         Case{"500ms", 500ms},  Case{"5s", 5s},
        Case{"10m", 10min},       Case{"1h30m", 90min},  Case{"2d", 48h},
        Case{"1.5s", 1500ms},     Case{"0.25ms", 250us}, Case{"1d2h3m4s5ms6us7ns", 93784005006007ns},
        Case{"1h0.5s", 3600500ms}};
    for (const Case& one : cases) {
      CAPTURE(one.text);
      REQUIRE(parse_duration(one.text).has_value());
      CHECK(parse_duration(one.text).value() == one.value);
    }
    CHECK(contains(why(parse_duration("5")), "has no unit"));
    CHECK(contains(why(parse_duration("5 s")), "unknown unit"));
    CHECK(contains(why(parse_duration("5S")), "unknown unit"));
    CHECK(contains(why(parse_duration("5min")), "unknown unit"));
    CHECK(contains(why(parse_duration("30m1h")), "out of order"));
    CHECK(contains(why(parse_duration("1s1s")), "out of order"));
    CHECK(contains(why(parse_duration("1h30")), "has no unit"));
    CHECK(contains(why(parse_duration("05s")), "leading zero"));
    CHECK(contains(why(parse_duration("1.s")), "no digit after the point"));
    CHECK(contains(why(parse_duration("0.1234567891s")), "more than 9 digits"));
    CHECK(why(parse_duration("")) == "is empty");
    for (const std::string text : {"-5s", ".5s", "s", "1e3s", "5s ", "inf"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_duration(text).has_value());
    }
  }

  TEST_CASE("durations end at 2^63 nanoseconds, also as a sum") {
    CHECK(parse_duration("9223372036854775807ns").value() == std::chrono::nanoseconds::max());
    CHECK(why(parse_duration("9223372036854775808ns")) == "is too large");
    CHECK(why(parse_duration("106752d")) == "is too large");
    CHECK(why(parse_duration("106751d24h")) == "is too large");
    CHECK(parse_duration("106751d23h").has_value());
    CHECK(why(parse_duration("99999999999999999999999s")) == "is too large");
  }

  TEST_CASE("sizes count by 1000 or by 1024, as the unit says") {
    struct Case {
      const char* text;
      std::uint64_t value;
    };
    constexpr std::array cases{Case{"0", 0},
                               Case{"4096", 4096},
                               Case{"1B", 1},
                               Case{"4kB", 4000},
                               Case{"4KiB", 4096},
                               Case{"3MB", 3'000'000},
                               Case{"1MiB", 1048576},
                               Case{"140GB", 140'000'000'000},
                               Case{"4GiB", 4ull << 30},
                               Case{"2TB", 2'000'000'000'000},
                               Case{"1.5TiB", 3ull << 39},
                               Case{"1PB", 1'000'000'000'000'000},
                               Case{"1PiB", 1ull << 50},
                               Case{"0.5KiB", 512}};
    for (const Case& one : cases) {
      CAPTURE(one.text);
      REQUIRE(parse_size(one.text).has_value());
      CHECK(parse_size(one.text).value() == one.value);
    }
    for (const std::string text :
         {"", "4G", "4g", "4gib", "4 GiB", "4GiB ", "-1", "0x10", "1e6", "04KiB", "B", "1.5", "1EB"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_size(text).has_value());
    }
    CHECK(parse_size("8191PiB").has_value());
    CHECK(why(parse_size("8192PiB")) == "is too large");
    CHECK(why(parse_size("8191.999999999999PiB")) == "has more than 9 digits after the point");
    CHECK(contains(why(parse_size("4G")), "unknown unit"));
  }

  TEST_CASE("rates are bits with bps and bytes with /s") {
    struct Case {
      const char* text;
      std::uint64_t bytes_per_second;
    };
    constexpr std::array cases{
        Case{"8bps", 1},      Case{"10Gbps", 1'250'000'000},  Case{"0.4Gbps", 50'000'000},  Case{"400Mbps", 50'000'000},
        Case{"64kbps", 8000}, Case{"1Tbps", 125'000'000'000}, Case{"381MB/s", 381'000'000}, Case{"1GiB/s", 1ull << 30},
        Case{"1B/s", 1}};
    for (const Case& one : cases) {
      CAPTURE(one.text);
      REQUIRE(parse_rate(one.text).has_value());
      CHECK(parse_rate(one.text).value() == Rate{one.bytes_per_second});
    }
    for (const std::string text :
         {"", "10", "10G", "10Gb/s", "10GBps", "10 Gbps", "10gbps", "1e3bps", "-1bps", "/s", "1/s", "B/s"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_rate(text).has_value());
    }
    CHECK(parse_rate("7bps").value() == Rate{0});
  }

  TEST_CASE("a share is a decimal or a percentage, at most 1") {
    CHECK(parse_percent("95%").value() == doctest::Approx(0.95));
    CHECK(parse_percent("0.95").value() == doctest::Approx(0.95));
    CHECK(parse_percent("1.5%").value() == doctest::Approx(0.015));
    CHECK(parse_percent("100%").value() == 1.0);
    CHECK(parse_percent("1").value() == 1.0);
    CHECK(why(parse_percent("101%")) == "is more than 100%");
    CHECK(why(parse_percent("95")) == "is more than 100%; for 95 in a hundred write 95%");
    CHECK(why(parse_percent("101")) == "is more than 100%");
    for (const std::string text : {"", "%", "95 %", "-1%", "1e-2", "nan", "95%%", ".95"}) {
      CAPTURE(text);
      CHECK(contains(why(parse_percent(text)), "is not a share"));
    }
  }

  TEST_CASE("C63: a flag is true or false; its look-alikes are refused") {
    CHECK(parse_flag("true").value());
    CHECK_FALSE(parse_flag("false").value());
    for (const std::string text : {"yes", "no", "on", "off", "y", "n", "TRUE", "True", "FALSE", "1", "0"}) {
      CAPTURE(text);
      CHECK(why(parse_flag(text)) == "is not a flag here; write true or false");
    }
    CHECK(why(parse_flag("maybe")) == "must be true or false");
    CHECK(why(parse_flag("")) == "must be true or false");
  }

  TEST_CASE("an address is host and port, IPv6 in brackets") {
    CHECK(parse_address("hel-01:7443").value() == Address{"hel-01", 7443});
    CHECK(parse_address("10.0.0.1:1").value() == Address{"10.0.0.1", 1});
    CHECK(parse_address("[::1]:65535").value() == Address{"::1", 65535});
    CHECK(parse_address("[fe80::1%eth0]:7443").value() == Address{"fe80::1%eth0", 7443});
    CHECK(parse_address("[2001:db8::5]:7443").value().text() == "[2001:db8::5]:7443");
    CHECK(parse_address("host.example:7443").value().text() == "host.example:7443");
    for (const std::string text :
         {"", "host", ":7443", "::1:7443", "[::1]", "[]:7443", "[host]:7443", "[::1:7443", "ho st:7443", "host/x:7443",
          "http://host:7443", "user@host:7443", "h\xc3\xb6st:7443"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_address(text).has_value());
    }
    CHECK(why(parse_address("h:0")) == "has a port that is not in 1 to 65535");
    CHECK(why(parse_address("h:70000")) == "has a port that is not in 1 to 65535");
    CHECK(why(parse_address("h:08443")) == "has a port that has a leading zero; write it without");
    CHECK(why(parse_address("h:")) == "has a port that is empty");
    CHECK(why(parse_address("h:-1")) == "has a port that is not a plain decimal number");
    CHECK(parse_address(std::string(253, 'a') + ":1").has_value());
    CHECK(contains(why(parse_address(std::string(254, 'a') + ":1")), "253"));
  }

  TEST_CASE("values are written in the shortest form that reads back as the same") {
    CHECK(duration_text(0ns) == "0s");
    CHECK(duration_text(90s) == "90s");
    CHECK(duration_text(1h) == "1h");
    CHECK(duration_text(1500ms) == "1500ms");
    CHECK(size_text(0) == "0B");
    CHECK(size_text(1ull << 30) == "1GiB");
    CHECK(size_text(140'000'000'000) == "140GB");
    CHECK(size_text(1023) == "1023B");
    CHECK(rate_text(Rate{1'250'000'000}) == "1250MB/s");
    CHECK(share_text(0.95) == "0.95");
    CHECK(share_text(1) == "1");
    CHECK(share_text(0) == "0");

    std::mt19937_64 random(20'26);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t value = (random() >> 1) >> (random() % 63);
      CAPTURE(value);
      const std::chrono::nanoseconds duration(static_cast<std::int64_t>(value));
      CHECK(parse_duration(duration_text(duration)).value() == duration);
      CHECK(parse_size(size_text(value)).value() == value);
      CHECK(parse_rate(rate_text(Rate{value})).value() == Rate{value});
      const double share = static_cast<double>(random() % 1'000'000'001) / 1e9;
      CHECK(parse_percent(share_text(share)).value() == share);
    }
  }

  TEST_CASE("asking a refusal for its value names the reason") {
    CHECK_THROWS_WITH_AS((void)parse_count("x").value(), "value read from a refusal: is not a plain decimal number",
                         std::logic_error);
  }
}
