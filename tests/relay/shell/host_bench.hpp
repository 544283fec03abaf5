// One root and hosts of its mesh as HostStores on disk, with refits made by the real encoder: the shell's blocking work
// without threads or sockets.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <memory>

#include "relay/shell/host_store.hpp"
#include "relay/shell/image_opening.hpp"
#include "relay/shell/marker_store.hpp"
#include "relay/shell/refit_store.hpp"
#include "relay/shell/root_store.hpp"
#include "relay/source/refit_producer.hpp"
#include "tests/relay/store/sample_image.hpp"

namespace deltarelay::relay::testing {

inline const std::atomic<bool> never{false};

struct Mesh {
  Mesh() {
    REQUIRE(codec::ContentSigner::generate(directory.path / "content.key", directory.path / "content.pub").has_value());
    signer = *codec::ContentSigner::load(directory.path / "content.key");
    id.bytes.fill(std::byte{7});
  }
  /// Opens (again) the host's state; its image directory is NAME/image.
  [[nodiscard]] std::unique_ptr<HostStore> open(const std::string& name, bool is_root = false) const {
    auto store = HostStore::open(options(name, is_root), signer->verifier(), is_root ? signer : std::nullopt);
    if (!store) FAIL(store.error().text());
    return std::move(*store);
  }
  [[nodiscard]] HostStoreOptions options(const std::string& name, bool is_root, std::uint64_t first_boot = 0) const {
    HostStoreOptions options;
    options.state_dir = directory.path / name / "state";
    options.image_dir = directory.path / name / "image";
    options.node = name;
    options.mesh = id;
    options.block_bytes = block_bytes;
    options.is_root = is_root;
    options.first_boot = first_boot;
    return options;
  }

  TemporaryDirectory directory;
  codec::MeshId id;
  std::optional<codec::ContentSigner> signer;
};

/// A copy of the root's image in which every byte of these blocks is another.
inline std::filesystem::path make_export(const HostStore& root, const std::string& name,
                                         const std::vector<std::uint64_t>& blocks) {
  const auto directory = root.options().image_dir.parent_path() / name;
  std::filesystem::create_directories(directory);
  std::filesystem::copy_file(root.options().image_dir / "model.safetensors", directory / "model.safetensors");
  auto image = Image::open(directory, block_bytes);
  REQUIRE(image.has_value());
  for (const std::uint64_t ordinal : blocks) {
    auto content = content_of(**image, ordinal);
    for (std::byte& byte : content) byte ^= std::byte{0x40};
    REQUIRE((*image)->write_block((*image)->layout()->block_at(ordinal), content).has_value());
  }
  return directory;
}

/// All records of a refit of the root's image to `directory`, END included.
inline std::vector<codec::RecordPtr> encode(HostStore& root, Version version, const std::filesystem::path& directory) {
  const auto image = root.image();
  auto source = Export::open(directory, image->layout());
  if (!source) FAIL(source.error().text());
  RefitOrder order;
  order.version = version;
  order.base = root.record().committed;
  order.epoch = root.record().epoch;
  order.mesh = root.options().mesh;
  order.base_image = root.record().image;
  order.base_digests = root.table()->base();
  order.read_base = [image](codec::BlockId id, codec::MutableBytes scratch) -> codec::Result<codec::Bytes> {
    const auto out = scratch.first(image->layout().size_of(id));
    REQUIRE(image->image().read_block(id, out).has_value());
    return codec::Bytes(out);
  };
  order.source = *source;
  order.signer = *root.signer();
  std::vector<codec::RecordPtr> records;
  {
    RefitProducer producer({}, [&](Event event) {
      if (auto* produced = std::get_if<RecordProduced>(&event)) records.push_back(produced->record);
      if (auto* ended = std::get_if<EncodeEnded>(&event); ended && !ended->error_code.empty()) records.clear();
    });
    producer.start(std::move(order));
    producer.wait();
  }
  return records;
}

/// An engine that reads the host's image as long as it lives.
struct Engine {
  explicit Engine(const HostStore& host)
      : lock(::open((host.options().image_dir / "deltarelay.lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644), "") {
    REQUIRE(::flock(lock.descriptor(), LOCK_SH | LOCK_NB) == 0);
  }
  File lock;
};

inline void append(HostStore& host, const std::vector<codec::RecordPtr>& records) {
  for (const codec::RecordPtr& record : records) {
    REQUIRE(host.log().publish(record).has_value());
    REQUIRE(host.log().write(record).has_value());
  }
}

/// Applies the refit's FRAME records that lie in the log, `count` of them.
inline void apply(HostStore& host, Version version, std::size_t count = SIZE_MAX) {
  std::size_t applied = 0;
  REQUIRE(for_each_record(host, version, [&](const codec::RecordPtr& record) {
            if (record->header.type != codec::RecordType::frame || applied == count) return true;
            const FrameApplied event = apply_record(host, host.table(), LogPosition{version, record->header.sequence});
            CHECK(event.error_code.empty());
            CHECK(event.needs_repair.empty());
            ++applied;
            return true;
          }).has_value());
}

/// What deltarelay.json says, as text; empty when there is none.
inline std::string marker_of(const HostStore& host) {
  auto content = read_file(FileOps::real(), host.options().image_dir / "deltarelay.json", codec::mib);
  if (!content) return {};
  return {reinterpret_cast<const char*>(content->data()), content->size()};
}

/// While it lives, deltarelay.json cannot be replaced, by root neither.
struct MarkerBlocked {
  explicit MarkerBlocked(const HostStore& host) : in_the_way(host.options().image_dir / "deltarelay.json.tmp") {
    REQUIRE(std::filesystem::create_directory(in_the_way));
  }
  ~MarkerBlocked() { std::filesystem::remove(in_the_way); }
  MarkerBlocked(const MarkerBlocked&) = delete;
  MarkerBlocked& operator=(const MarkerBlocked&) = delete;
  std::filesystem::path in_the_way;
};

inline std::vector<std::byte> bytes_of(const std::filesystem::path& directory) {
  auto content = read_file(FileOps::real(), directory / "model.safetensors", codec::gib);
  REQUIRE(content.has_value());
  return *content;
}

}  // namespace deltarelay::relay::testing
