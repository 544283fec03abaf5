#include "tools/relayctl/checkpoint_diff.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "codec/input_file.hpp"
#include "codec/kernels/scan.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::relayctl {
namespace {

using codec::BlockId;
using codec::Bytes;
using codec::Checked;
using codec::CheckpointMap;
using codec::TensorIndex;
using codec::TensorSpec;

Checked<CheckpointMap> open_map(const std::filesystem::path& path) {
  auto checkpoint = codec::Checkpoint::open(path);
  if (!checkpoint) return checkpoint.error();
  return CheckpointMap::open(std::move(*checkpoint));
}

std::uint64_t first_difference(Bytes a, Bytes b) {
  const std::size_t common = std::min(a.size(), b.size());
  const auto at = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
  return static_cast<std::uint64_t>(at.first - a.begin());
}

/// A tensor of both, by its place in each table.
struct Pair {
  TensorIndex a{}, b{};
};

/// Sorts the tensors of both tables into pairs to compare and differences that need no look at the bytes.
std::vector<Pair> pair_up(const codec::Layout& a, const codec::Layout& b, CheckpointDiff& diff) {
  std::vector<Pair> pairs;
  std::size_t i = 0, k = 0;
  const auto left = a.tensors(), right = b.tensors();
  while (i < left.size() || k < right.size()) {
    if (k == right.size() || (i < left.size() && left[i].name < right[k].name)) {
      diff.differing.push_back({left[i++].name, Difference::only_in_a, {}});
    } else if (i == left.size() || right[k].name < left[i].name) {
      diff.differing.push_back({right[k++].name, Difference::only_in_b, {}});
    } else {
      if (left[i].dtype == right[k].dtype && left[i].shape == right[k].shape) {
        pairs.push_back({TensorIndex{static_cast<std::uint32_t>(i)}, TensorIndex{static_cast<std::uint32_t>(k)}});
      } else {
        diff.differing.push_back({left[i].name, Difference::declared_otherwise,
                                  declaration_text(left[i]) + " against " + declaration_text(right[k])});
      }
      ++i;
      ++k;
    }
  }
  return pairs;
}

/// One block's worth of a pair.
struct Piece {
  std::size_t pair = 0;
  std::uint64_t offset = 0, bytes = 0;
};

Checked<void> compare_content(const CheckpointMap& a, const CheckpointMap& b, const std::vector<Pair>& pairs,
                              unsigned threads, CheckpointDiff& diff) {
  const codec::Layout& layout = a.layout();
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const TensorSpec& tensor = layout.tensor(pairs[i].a);
    for (std::uint64_t at = 0; at < tensor.bytes; at += layout.block_bytes())
      pieces.push_back({i, at, std::min<std::uint64_t>(layout.block_bytes(), tensor.bytes - at)});
    diff.bytes += tensor.bytes;
    diff.elements += tensor.bytes / codec::element_width(tensor.dtype);
    ++diff.tensors;
  }
  std::mutex mutex;
  std::map<std::size_t, TensorDifference> found;  // by pair
  std::vector<std::vector<std::uint64_t>> masks(threads);
  auto done = synthetic::run_jobs(pieces.size(), {threads}, [&](std::size_t job, unsigned worker) -> Checked<void> {
    const Piece& piece = pieces[job];
    const TensorSpec& tensor = layout.tensor(pairs[piece.pair].a);
    const auto offset = static_cast<std::size_t>(piece.offset), bytes = static_cast<std::size_t>(piece.bytes);
    const Bytes old = a.tensor(pairs[piece.pair].a).subspan(offset, bytes);
    const Bytes now = b.tensor(pairs[piece.pair].b).subspan(offset, bytes);
    const unsigned width = codec::element_width(tensor.dtype);
    masks[worker].resize(codec::kernels::mask_words(bytes / width));
    const std::size_t changed = codec::kernels::scan_changes(old, now, width, masks[worker].data());
    if (changed == 0) return {};
    const std::uint64_t first = piece.offset + first_difference(old, now);
    const std::lock_guard lock(mutex);
    auto [at, fresh] = found.try_emplace(
        piece.pair, TensorDifference{tensor.name, Difference::content, {}, first, 0, tensor.bytes / width});
    if (!fresh) at->second.first_byte = std::min(at->second.first_byte, first);
    at->second.changed_elements += changed;
    return {};
  });
  if (!done) return done;
  for (auto& [pair, difference] : found) {
    diff.changed_elements += difference.changed_elements;
    diff.differing.push_back(std::move(difference));
  }
  return {};
}

Checked<std::vector<std::byte>> content_of(const std::filesystem::path& path) {
  auto file = codec::InputFile::open(path);
  if (!file) return file.error();
  std::vector<std::byte> content(static_cast<std::size_t>(file->identity().bytes));  // companions have a size limit
  if (auto read = file->read_at(0, content); !read) return read.error();
  return content;
}

Checked<void> compare_companions(const codec::Checkpoint& a, const codec::Checkpoint& b, CheckpointDiff& diff) {
  for (const std::string& name : a.companions()) {
    if (!std::ranges::binary_search(b.companions(), name)) {
      diff.files.push_back({name, Difference::only_in_a});
      continue;
    }
    auto old = content_of(a.directory() / name);
    if (!old) return old.error();
    auto now = content_of(b.directory() / name);
    if (!now) return now.error();
    if (*old != *now) diff.files.push_back({name, Difference::content, first_difference(*old, *now)});
  }
  for (const std::string& name : b.companions())
    if (!std::ranges::binary_search(a.companions(), name)) diff.files.push_back({name, Difference::only_in_b});
  std::ranges::sort(diff.files, {}, &FileDifference::name);
  return {};
}

}  // namespace

std::string declaration_text(const TensorSpec& tensor) {
  std::string out(codec::dtype_name(tensor.dtype));
  out += " [";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(tensor.shape[i]);
  }
  out += ']';
  return out;
}

Checked<CheckpointDiff> diff_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b,
                                         const DiffOptions& options) {
  auto left = open_map(a);
  if (!left) return left.error();
  auto right = open_map(b);
  if (!right) return right.error();
  CheckpointDiff diff;
  const std::vector<Pair> pairs = pair_up(left->layout(), right->layout(), diff);
  if (auto done = compare_content(*left, *right, pairs, options.threads, diff); !done) return done.error();
  std::ranges::sort(diff.differing, {}, &TensorDifference::name);
  if (!options.tensors_only)
    if (auto done = compare_companions(left->checkpoint(), right->checkpoint(), diff); !done) return done.error();
  if (auto same = left->check_unchanged(); !same) return same.error();
  if (auto same = right->check_unchanged(); !same) return same.error();
  return diff;
}

}  // namespace deltarelay::relayctl
