// One pass over a delta file: everything that can be checked without an image, and what it holds.
//
// `delta info` prints it; `delta apply` makes it before it touches the image, so that a damaged file changes nothing.
#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/delta_file.hpp"

namespace deltarelay::relayctl {

struct Context;

struct DeltaSummary {
  std::string path;
  codec::DeltaIdentity identity;
  codec::BeginPayload begin;
  codec::EndPayload end;
  bool is_signed = false;
  std::uint64_t file_bytes = 0, frame_payload_bytes = 0, skipped_records = 0;
  codec::FrameStats stats;                  ///< blocks and bytes by encoding, overhead; nothing of elements
  std::vector<codec::CompanionFile> files;  ///< whose content is in the file
  std::vector<std::pair<codec::BlockId, codec::Digest>> targets;  ///< one per changed block, ascending
};

/// Reads all of it. Errors: those of DeltaFileReader; frames that do not parse; a block or a file that comes twice;
/// counts or files that END contradicts. `verifier` null: signatures are not looked at.
[[nodiscard]] codec::Checked<DeltaSummary> read_delta(const std::filesystem::path& path,
                                                      const codec::ContentVerifier* verifier);

/// Schema deltarelay.delta/1.
[[nodiscard]] boost::json::object summary_json(const DeltaSummary& summary);
/// The same for people, in lines.
[[nodiscard]] std::string summary_text(const DeltaSummary& summary, bool verified);

/// The rows of FrameStats that are not empty: {name, blocks, bytes}.
[[nodiscard]] boost::json::array encodings_json(const codec::FrameStats& stats);
[[nodiscard]] std::string encodings_text(const codec::FrameStats& stats);

[[nodiscard]] std::string mesh_hex(const codec::MeshId& mesh);

}  // namespace deltarelay::relayctl
