// Everything that the core may ask of its shell, as values. Imperative; performed in order.
//
// The shell decides nothing: it performs an action and, where the comment says so, answers with the named event.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "relay/core/events.hpp"

namespace deltarelay::relay {

// --- links
/// -> LinkUp or ConnectFailed
struct ConnectTo { std::string peer, address; };
struct CloseLink { LinkId link; std::string code, text; };
struct SendMessage { LinkId link; Message message; };
/// Sends one record of the log, from memory or from its segment. -> RecordSent
struct SendRecord { LinkId link; LogPosition position; };

// --- log
/// Make it readable at once, write it to the segment in order. -> LogFailed on error only
struct AppendRecord { codec::RecordPtr record; };
struct DropRefit { Version version; };

// --- applying
/// Say in the image directory that it is being changed, before the first block is. May be asked again. -> MarkFailed on
/// error only
struct MarkApplying { Version from, to; };
/// Apply the FRAME or FILE record at this place of the log. -> FrameApplied
struct ApplyRecord { LogPosition position; };
/// fsync log, msync image, form the new digest table's digest. -> ImageSynced
struct SyncImage { Version version; };
/// Make `version` the ledger's committed version with its END record, then write the marker. -> CommitSaved
struct SaveCommit { Version version; codec::RecordPtr end_record; };
/// Wait for blocks being applied, then compare what `version` touched with the committed digests. -> BaseCompared
struct CompareWithBase { Version version; };

/// The files that are open are not the image any more: open and hash what is there, and apply nothing meanwhile.
/// -> ImageOpened or ImageFailed
struct ReopenImage {};

// --- block sync, child side
/// Verify the records, open or make the image, hash it. -> SyncPrepared or SyncFailed
struct PrepareSync { codec::RecordPtr layout_record, end_record; };
/// One piece of the target digest table; after the last one -> SyncCompared or SyncFailed
struct StoreSyncDigests { std::uint64_t first = 0; std::vector<codec::Digest> digests; };
/// Takes blocks whose content is the one wanted: of the manifest while becoming its version, else of the committed version
/// or, when `accept_in_flight`, of the refit in flight. -> SyncBlocksApplied
struct ApplySyncBlocks {
  std::vector<std::byte> frame_payload;
  std::vector<std::uint64_t> wanted;  ///< ascending; blocks of the payload that are not among them are left alone
  bool accept_in_flight = false;
};
struct ApplySyncFile { std::vector<std::byte> file_payload; };
/// The image is the manifest's version: sync it, write ledger and marker. -> CommitSaved
struct SaveSynced { Version version; };
// --- block sync, parent side
/// Send the committed version's digest table in pieces.
struct SendSyncDigests { LinkId link; };
/// Read these blocks, check that each is at the version being synced to, at the committed one or at the one in flight (which of
/// them, the child sees by the digest), and send them as SyncBlocks. -> SyncBlocksSent
struct SendSyncBlocks { LinkId link; std::vector<std::uint64_t> ordinals; };
/// Send every companion file as SyncFile.
struct SendSyncFiles { LinkId link; };

// --- verifying
/// Compare the image with the ledger in the background, every byte when `deep`; a reading in progress is given up.
/// -> VerifyProgress at least every few seconds, ImageVerified
struct VerifyImage { std::uint64_t attempt = 0; bool deep = false; };
/// The image is about to change: the reading is of no use any more.
struct StopVerify {};

// --- root
/// Write and fsync the manifest: version, base, state open. -> ManifestSaved
struct SaveManifest { Version version, base; };
/// Seal a BEGIN from the image as it is, for a refit that will change nothing. -> RecordProduced, or EncodeEnded with
/// its error
struct SealBegin { Version version, base; };
/// Scan and encode on worker threads. -> RecordProduced…, EncodeEnded
struct StartEncode { Version version, base; std::string directory; };
struct StopEncode { Version version; };
/// fsync the decision and seal its record with the next sequence. -> DecisionSaved
struct SaveDecision { Version version; bool commit = false; Sequence sequence{}; std::string why; };
/// Answer an operator's request. An empty code means success.
struct Answer { std::uint64_t request = 0; Version version; std::string code, text; };

/// Something an operator may want to read: a line in the log, an event in the list.
struct Note { enum class Level : std::uint8_t { debug, info, warn, error } level; std::string code, text; };

using Action =
    std::variant<ConnectTo, CloseLink, SendMessage, SendRecord, AppendRecord, DropRefit, MarkApplying, ApplyRecord,
                 SyncImage, SaveCommit, CompareWithBase, ReopenImage, PrepareSync, StoreSyncDigests, ApplySyncBlocks,
                 ApplySyncFile, SaveSynced, SendSyncDigests, SendSyncBlocks, SendSyncFiles, SaveManifest, SealBegin,
                 StartEncode, StopEncode, SaveDecision, Answer, Note, VerifyImage, StopVerify>;
using Actions = std::vector<Action>;

}  // namespace deltarelay::relay
