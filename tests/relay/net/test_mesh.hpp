// A mesh for tests: an authority in a temporary directory, certificates on demand, and the root's content key.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "codec/record.hpp"
#include "relay/net/certificate.hpp"
#include "relay/net/tls_context.hpp"
#include "tests/relay/net/temporary_directory.hpp"

namespace deltarelay::tests {

class TestMesh {
 public:
  explicit TestMesh(std::string name = "m1") : name_(std::move(name)) {
    REQUIRE(relay::net::init_ca(ca_dir(), name_).has_value());
  }

  [[nodiscard]] std::filesystem::path ca_dir() const { return directory_.path() / "ca"; }
  [[nodiscard]] std::filesystem::path node_dir(const std::string& node) const { return directory_.path() / node; }

  /// Issues the certificate on first use.
  [[nodiscard]] relay::net::TlsPaths paths(const std::string& node,
                                           relay::net::Role role = relay::net::Role::relay) const {
    relay::net::CertificateOrder order;
    order.node = node;
    order.role = role;
    return paths(order);
  }
  [[nodiscard]] relay::net::TlsPaths paths(const relay::net::CertificateOrder& order) const {
    const auto dir = node_dir(order.node);
    if (!std::filesystem::exists(dir)) REQUIRE(relay::net::issue(ca_dir(), order, dir).has_value());
    relay::net::TlsPaths out;
    out.certificate = dir / "node.crt";
    out.key = dir / "node.key";
    out.ca = dir / "ca.crt";
    return out;
  }
  [[nodiscard]] std::shared_ptr<relay::net::TlsContext> tls(const std::string& node,
                                                            relay::net::Role role = relay::net::Role::relay) const {
    return load(paths(node, role));
  }
  [[nodiscard]] static std::shared_ptr<relay::net::TlsContext> load(const relay::net::TlsPaths& paths) {
    auto loaded = relay::net::TlsContext::load(paths);
    REQUIRE_MESSAGE(loaded.has_value(), (loaded ? std::string() : loaded.error().text()));
    return *loaded;
  }

  [[nodiscard]] codec::MeshId id() const { return relay::net::mesh_id_of(ca_dir() / "ca.crt", name_).value(); }
  [[nodiscard]] codec::ContentSigner signer() const {
    return codec::ContentSigner::load(ca_dir() / "content.key").value();
  }
  [[nodiscard]] codec::ContentVerifier verifier() const {
    return codec::ContentVerifier::load(ca_dir() / "content.pub").value();
  }

  /// A signed frame record whose payload is a pattern of its sequence.
  [[nodiscard]] codec::RecordPtr frame(std::uint64_t sequence, std::size_t payload_bytes) const {
    const auto key = signer();
    codec::RecordHeader header;
    header.type = codec::RecordType::frame;
    header.mesh = id();
    header.version = codec::Version{2};
    header.sequence = codec::Sequence{sequence};
    return codec::seal_record(header, pattern(sequence, payload_bytes), &key);
  }
  /// A link message of the first free type.
  [[nodiscard]] codec::RecordPtr message(std::uint64_t sequence, std::size_t payload_bytes = 0) const {
    codec::RecordHeader header;
    header.type = static_cast<codec::RecordType>(0x103);
    header.mesh = id();
    header.sequence = codec::Sequence{sequence};
    return codec::make_link_message(header, pattern(sequence, payload_bytes));
  }

 private:
  static std::vector<std::byte> pattern(std::uint64_t seed, std::size_t size) {
    std::vector<std::byte> out(size);
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    for (std::byte& b : out) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      b = static_cast<std::byte>(state >> 56);
    }
    return out;
  }

  TemporaryDirectory directory_;
  std::string name_;
};

}  // namespace deltarelay::tests
