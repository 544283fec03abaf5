// Everything that can happen to a node, as values. Past tense; fed to Node::handle with the time.
//
// Layer: relay/core, no I/O. The shell makes them from links, store and source; the simulator makes them from a seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "codec/digest.hpp"
#include "codec/payloads.hpp"
#include "codec/record.hpp"
#include "relay/core/messages.hpp"

namespace deltarelay::relay {

/// A monotonic instant. The core never reads a clock.
using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

/// One connection, numbered by the shell; never reused within a process.
enum class LinkId : std::uint64_t {};

/// The image of a committed version, as the ledger proves it.
struct ImageState {
  Version version{};             ///< 0: no whole image
  codec::Digest image;           ///< digest of the digest table
  codec::RecordPtr end_record;   ///< signed; null when version is 0
  codec::RecordPtr layout_record;
};

// --- links
struct LinkUp { LinkId link; std::string peer; bool to_parent = false; };
struct LinkClosed { LinkId link; std::string code, text; };
struct ConnectFailed { std::string peer, code, text; };
struct MessageArrived { LinkId link; Message message; };
/// A log record whose signature and SHA-256 hold.
struct FrameReceived { LinkId link; codec::RecordPtr record; };
struct FrameRejected { LinkId link; std::string reason; };
/// Bytes that were queued on a link have been handed to the kernel.
struct RecordSent { LinkId link; std::uint64_t bytes = 0; };
struct Tick {};

// --- store
/// The image is open: `image` is what it is proved to be, or version 0.
struct ImageOpened { ImageState image; };
/// It cannot be opened, or what was open is not the image any more.
struct ImageFailed { std::string code, text; bool retryable = true; };
/// The code of any event of the store that found a file of the image truncated, removed or replaced under it.
inline constexpr const char* image_replaced = "IMAGE_REPLACED";
/// The code of whatever cannot go on before an engine lets go of the image.
inline constexpr const char* engine_reads_code = "ENGINE_READS";
/// Nothing is written to the image while an engine reads it: who waits for what, and since when. An empty code: over.
struct EnginesAwaited {
  std::string code, text;
};
/// The log cannot be written; an empty code: it can again.
struct LogFailed { std::string code, text; };
/// Engines could not be told that the image is being changed, so it is not.
struct MarkFailed {
  Version version;
  std::string error_code, error_text;
};
struct FrameApplied {
  Version version; Sequence sequence;
  std::uint64_t applied = 0, already = 0;
  std::vector<std::uint64_t> needs_repair;  ///< ordinals of blocks neither at base nor at target
  std::string error_code, error_text;       ///< empty: no error
};
/// Log and image are durable; `image` is the digest of the new digest table.
struct ImageSynced { Version version; codec::Digest image; std::string error_code, error_text; };
/// The ledger says so durably.
struct CommitSaved { ImageState image; std::string error_code, error_text; };
/// After an abort: the blocks whose content is not the committed version's.
struct BaseCompared { Version version; std::vector<std::uint64_t> differing; std::string error_code, error_text; };

// --- block sync, child side
/// The manifest's records hold, an image of that layout is open and hashed.
struct SyncPrepared { Version version; };
/// All digests are there and match the manifest; these blocks are lacking.
struct SyncCompared { Version version; std::vector<std::uint64_t> missing; };
struct SyncBlocksApplied { std::vector<std::uint64_t> verified, refused; std::string error_code, error_text; };
struct SyncFailed { std::string code, text; bool retryable = true; };
// --- block sync, parent side
struct SyncBlocksSent { LinkId link; std::vector<std::uint64_t> unavailable; };

// --- verifying
/// An operator asks for this node and all below it. -> Answer when nobody is waited for any more
struct VerifyRequested { std::uint64_t request = 0; bool deep = false; };
/// Signs of life of the reading that VerifyImage asked for.
struct VerifyProgress { std::uint64_t attempt = 0, checked_bytes = 0, total_bytes = 0; };
/// `result.state` is ok, damaged or failed.
struct ImageVerified { std::uint64_t attempt = 0; VerifyResult result; };

// --- root
struct PublishRequested {
  std::uint64_t request = 0;
  std::string directory;
  std::optional<Version> version;
  std::string policy;  ///< empty: the configured one; `all` or `quorum:0.95`
};
struct AbortRequested { std::uint64_t request = 0; Version version; std::string why; };
struct ManifestSaved { Version version; std::string error_code, error_text; };
/// One sealed record of the refit in order: BEGIN, FRAME…, FILE…, END.
struct RecordProduced { codec::RecordPtr record; };
struct EncodeEnded { Version version; std::string error_code, error_text; };
/// The decision is durable; `record` is the sealed COMMIT or ABORT to append.
struct DecisionSaved { codec::RecordPtr record; std::string error_code, error_text; };

using Event =
    std::variant<LinkUp, LinkClosed, ConnectFailed, MessageArrived, FrameReceived, FrameRejected, RecordSent, Tick,
                 ImageOpened, ImageFailed, EnginesAwaited, LogFailed, MarkFailed, FrameApplied, ImageSynced,
                 CommitSaved, BaseCompared, SyncPrepared, SyncCompared, SyncBlocksApplied, SyncFailed, SyncBlocksSent,
                 PublishRequested, AbortRequested, ManifestSaved, RecordProduced, EncodeEnded, DecisionSaved,
                 VerifyRequested, VerifyProgress, ImageVerified>;

}  // namespace deltarelay::relay
