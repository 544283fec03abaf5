#include "relay/shell/marker_store.hpp"

namespace deltarelay::relay {
namespace {

ImageMarker committed_marker(HostStore& store, std::vector<std::string> changed_tensors) {
  ImageMarker marker;
  marker.version = store.record().committed;
  marker.digest = store.record().image;
  marker.changed_tensors = std::move(changed_tensors);
  return marker;
}

ImageMarker applying_marker(HostStore& store, Version from, Version to) {
  ImageMarker marker;
  marker.version = from;
  marker.applying = true;
  marker.target = to;
  if (codec::raw(from) != 0) marker.digest = store.record().image;
  return marker;
}

StoreResult<void> write(HostStore& store, const ImageMarker& marker) {
  auto written = write_marker(store.options().image_dir, marker);
  if (written) store.marker_due.reset();
  return written;
}

StoreResult<void> correct(HostStore& store, const ImageMarker& marker) {
  if (find_marker(store.options().image_dir, marker) == MarkerFound::same) return {};
  return write(store, marker);
}

}  // namespace

StoreResult<void> mark_applying(HostStore& store, Version from, Version to) {
  if (auto same = store.image()->image().check_identity(); !same) return same;
  return write(store, applying_marker(store, from, to));
}

StoreResult<void> mark_committed(HostStore& store, std::vector<std::string> changed_tensors) {
  return write(store, committed_marker(store, std::move(changed_tensors)));
}

void mark_committed_or_later(HostStore& store, std::vector<std::string> changed_tensors) {
  const ImageMarker marker = committed_marker(store, std::move(changed_tensors));
  auto written = write(store, marker);
  if (written) return;
  store.marker_due = marker;
  store.note(Note::Level::error, reason_code(written.error()),
             "engines are not told yet that the image has its version: " + written.error().text() + "; tried again");
}

void retry_marker(HostStore& store) {
  if (!store.marker_due) return;
  const ImageMarker marker = *store.marker_due;
  if (write(store, marker))
    store.note(Note::Level::info, "MARKER_WRITTEN", "deltarelay.json says now which version the image has");
}

StoreResult<void> correct_to_committed(HostStore& store) {
  return correct(store, committed_marker(store, {}));
}

StoreResult<void> correct_to_applying(HostStore& store, Version to) {
  return correct(store, applying_marker(store, store.record().committed, to));
}

StoreResult<void> correct_to_no_version(HostStore& store) {
  const ImageMarker marker = applying_marker(store, Version{}, Version{});
  if (find_marker(store.options().image_dir, marker) != MarkerFound::other) return {};
  return write(store, marker);
}

}  // namespace deltarelay::relay
