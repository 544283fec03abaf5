// Content keys and signatures: right ones hold, all others do not.
#include "codec/signature.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/codec/content_keys.hpp"
#include "tests/codec/octets.hpp"

using namespace deltarelay::codec;
using deltarelay::tests::ContentKeys;
using deltarelay::tests::pattern;
using deltarelay::tests::TempDir;

TEST_SUITE("codec/signature") {
  TEST_CASE("SHA-256 of known inputs") {
    const auto hex = [](Bytes data) {
      std::string out;
      for (const std::byte b : sha256_of(data)) {
        out += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
        out += "0123456789abcdef"[std::to_integer<unsigned>(b) & 15];
      }
      return out;
    };
    CHECK(hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(hex(std::as_bytes(std::span("abc", 3))) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  }

  TEST_CASE("only the signed message verifies, and only with the pair's public key") {
    const ContentKeys keys, others;
    auto message = pattern(96, 1);
    const Signature signature = keys.signer.sign(message);
    CHECK(keys.verifier.verify(message, signature));
    CHECK(keys.signer.verifier().verify(message, signature));
    CHECK_FALSE(others.verifier.verify(message, signature));
    CHECK_FALSE(ContentVerifier{}.verify(message, signature));
    message[50] ^= std::byte{1};
    CHECK_FALSE(keys.verifier.verify(message, signature));
  }

  TEST_CASE("a key pair is never overwritten, and its private half is readable by its owner only") {
    const ContentKeys keys;
    struct stat status {};
    REQUIRE(::stat((keys.dir.path() / "content.key").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    const auto again = ContentSigner::generate(keys.dir.path() / "content.key", keys.dir.path() / "content.pub");
    REQUIRE(again.has_error());
    CHECK(again.error().code == errc::io_error);
    // The public half is there already: no half pair is left behind.
    const auto half = ContentSigner::generate(keys.dir.path() / "new.key", keys.dir.path() / "content.pub");
    CHECK(half.has_error());
    CHECK_FALSE(std::filesystem::exists(keys.dir.path() / "new.key"));
  }

  TEST_CASE("a missing file and a file that is no Ed25519 key are told apart, and both name the file") {
    const TempDir dir;
    const auto missing = ContentVerifier::load(dir.path() / "none.pub");
    REQUIRE(missing.has_error());
    CHECK(missing.error().code == errc::io_error);
    CHECK(missing.error().text().find("none.pub") != std::string::npos);
    std::ofstream(dir.path() / "text.pub") << "not a key\n";
    CHECK(ContentVerifier::load(dir.path() / "text.pub").error().code == errc::key_invalid);
    CHECK(ContentSigner::load(dir.path() / "text.pub").error().code == errc::key_invalid);
  }
}
