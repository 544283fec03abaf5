#include "relay/shell/image_mending.hpp"

#include <fmt/format.h>

#include "codec/checkpoint.hpp"
#include "relay/store/image_shape.hpp"

namespace deltarelay::relay {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

void remember_shape(const HostStore& store, const Image& image) {
  const auto warn = [&](const std::string& text) {
    store.note(Note::Level::warn, "IMAGE_SHAPE", "a damaged shard could not be made again: " + text);
  };
  auto shape = describe_files(image.checkpoint());
  if (!shape) return warn(shape.error().text());
  if (auto saved = save_shape(FileOps::real(), store.shape_path(), *shape); !saved) warn(saved.error().text());
}

StoreResult<void> mend_image(HostStore& store) {
  const std::filesystem::path& directory = store.options().image_dir;
  if (codec::Checkpoint::open(directory, store.options().block_bytes)) return {};
  auto shape = load_shape(FileOps::real(), store.shape_path());
  if (!shape) {
    store.note(Note::Level::warn, "IMAGE_SHAPE", "the image cannot be mended: " + shape.error().text());
    return {};  // the image's own fault is told when it is opened
  }
  if (!*shape) return {};
  const std::vector<std::string> names = damaged_files(directory, **shape);
  if (names.empty()) return {};
  auto lock = store.lock_image();
  if (!lock) return lock.error();
  ImageMarker of_no_version;
  of_no_version.applying = true;
  if (auto mended = Image::mend(directory, **shape, names, of_no_version); !mended) return mended;
  store.note(
      Note::Level::warn, "IMAGE_MENDED",
      fmt::format("in {} these files were cut short or gone: {}; they are made again, and their content comes by "
                  "block sync",
                  directory.string(), listed(names)));
  return {};
}

bool can_be_mended(const std::filesystem::path& state_dir, const std::filesystem::path& image_dir) {
  auto shape = load_shape(FileOps::real(), HostStore::shape_file(state_dir));
  return shape && *shape && !damaged_files(image_dir, **shape).empty();
}

}  // namespace deltarelay::relay
