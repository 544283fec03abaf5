#include "relay/source/export.hpp"

#include "codec/companion_files.hpp"

namespace deltarelay::relay {
codec::Checked<std::shared_ptr<const Export>> Export::open(const std::filesystem::path& directory,
                                                           const codec::Layout& wanted) {
  auto checkpoint = codec::Checkpoint::open(directory, wanted.block_bytes());
  if (!checkpoint) return checkpoint.error();
  if (checkpoint->layout()->digest() != wanted.digest()) {
    std::string why;
    for (const std::string& line : codec::describe_difference(wanted, *checkpoint->layout(), 5))
      why += (why.empty() ? "" : "; ") + line;
    return codec::Failure{make_error_code(codec::errc::malformed_payload), directory.string(),
                          "its tensors are not those of the root's image (here: the image, there: the export): " + why};
  }
  std::shared_ptr<Export> out(new Export(std::move(*checkpoint)));
  for (const codec::ShardFile& shard : out->checkpoint_.shards()) {
    const auto path = out->checkpoint_.directory() / shard.name;
    auto file = codec::InputFile::open(path, codec::errc::shard_missing);
    if (!file) return file.error();
    if (file->identity() != shard.identity)
      return codec::Failure{make_error_code(codec::errc::file_changed), path.string(),
                            "it changed while the directory was opened"};
    out->shards_.push_back(std::move(*file));
  }
  auto companions = codec::read_companions(out->checkpoint_);
  if (!companions) return companions.error();
  out->companions_ = std::move(*companions);
  return std::shared_ptr<const Export>(std::move(out));
}

codec::Result<codec::Bytes> Export::read_block(codec::BlockId id, codec::MutableBytes scratch) const {
  const codec::Layout& layout = *checkpoint_.layout();
  const codec::TensorPlace& place = checkpoint_.places()[codec::raw(id.tensor)];
  const codec::MutableBytes out = scratch.first(layout.size_of(id));
  if (auto read = shards_[place.shard].read_at(place.file_offset + layout.offset_of(id), out); !read)
    return read.error().code;
  return codec::Bytes(out);
}

codec::Checked<void> Export::check_unchanged() const {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (auto same = shards_[i].check_unchanged(); !same) return same;
    const codec::ShardFile& shard = checkpoint_.shards()[i];
    if (auto same = codec::check_same_file(checkpoint_.directory() / shard.name, shard.identity); !same) return same;
  }
  if (checkpoint_.index_identity())
    return codec::check_same_file(checkpoint_.directory() / codec::index_file_name, *checkpoint_.index_identity());
  return {};
}

}  // namespace deltarelay::relay
