#include "codec/companion_files.hpp"

#include <algorithm>

#include "codec/input_file.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {

Checked<FilePayload> read_companion(const std::filesystem::path& directory, const std::string& name) {
  const auto path = directory / name;
  auto file = InputFile::open(path);
  if (!file) return file.error();
  if (file->identity().bytes > file_payload_bytes_max - 4 * kib)
    return Failure{make_error_code(errc::table_too_large), path.string(), "too large to travel beside the tensors"};
  FilePayload out;
  out.name = name;
  out.content.resize(file->identity().bytes);
  if (auto read = file->read_at(0, out.content); !read) return read.error();
  if (auto same = file->check_unchanged(); !same) return same.error();
  out.sha256 = sha256_of(out.content);
  return out;
}

Checked<std::vector<FilePayload>> read_companions(const Checkpoint& checkpoint) {
  std::vector<FilePayload> out;
  for (const std::string& name : checkpoint.companions()) {
    auto file = read_companion(checkpoint.directory(), name);
    if (!file) return file.error();
    out.push_back(std::move(*file));
  }
  std::ranges::sort(out, {}, &FilePayload::name);
  return out;
}

CompanionFile describe(const FilePayload& file) {
  return {file.name, file.content.size(), file.sha256};
}

}  // namespace deltarelay::codec
