// `delta apply`: one image, one delta file, the block rule.
//
// In this order, so that nothing is written before everything that can be known is known: the whole file is read and
// checked; the image is locked and hashed; file and image must fit together; engines are held off; the marker says
// "applying"; blocks are written through slots; all is synced; the marker says "committed". A run that was killed
// anywhere is finished by the next one: what is at its target is left, what is at the base is written, the one block
// that may be torn is completed from its slot.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <mutex>
#include <thread>

#include "relay/store/applier.hpp"
#include "tools/relayctl/delta_actions.hpp"
#include "tools/relayctl/delta_summary.hpp"
#include "tools/relayctl/failures.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/image_marker.hpp"
#include "tools/relayctl/pace.hpp"

namespace deltarelay::relayctl {
namespace {

namespace fs = std::filesystem;
using codec::Digest;
using codec::raw;
using relay::StoreResult;
using Done = int;  ///< an exit code; 0: go on

constexpr std::string_view slot_prefix = ".deltarelay.slot.";
constexpr auto engine_poll_interval = std::chrono::milliseconds(20);

class Apply {
 public:
  Apply(const Context& context, Pace& pace, const DeltaOptions& options)
      : context_(context),
        pace_(pace),
        options_(options),
        what_("cannot apply " + options.file + " to " + options.image) {}

  int run() {
    const auto began = std::chrono::steady_clock::now();
    for (const auto step : {&Apply::read_file, &Apply::open_image, &Apply::recover_slots, &Apply::compare,
                            &Apply::compare_companions, &Apply::write}) {
      if (const Done done = (this->*step)(); done != 0) return done;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return report(took.count());
  }

 private:
  Done read_file() {
    if (!options_.verify_key.empty()) {
      auto loaded = codec::ContentVerifier::load(options_.verify_key);
      if (!loaded) return fail(context_, "cannot use the key", loaded.error());
      verifier_ = std::move(*loaded);
    }
    auto summary = read_delta(options_.file, verifier());
    if (!summary) return fail(context_, what_, summary.error());
    delta_ = std::move(*summary);
    if (delta_.is_signed && verifier() == nullptr)
      context_.note("warning: the signatures of " + options_.file + " were not checked (--verify-key)");
    return 0;
  }

  Done open_image() {
    const fs::path directory = options_.image;
    if (std::error_code ignored; !fs::is_directory(directory, ignored))
      return context_.fail(ExitCode::invalid, what_, "no such directory", "the directory of the image");
    auto image = relay::Image::open(directory, delta_.begin.block_bytes);
    if (!image) return fail(context_, what_, image.error());
    image_ = std::move(*image);
    const codec::Layout& layout = *image_->layout();
    if (layout.digest() != delta_.begin.layout_digest)
      return context_.fail(
          ExitCode::precondition, what_,
          fmt::format("the image has other tensors than the delta's base: {} in {} blocks, layout {}; "
                      "the delta is for {}, layout {}",
                      human_bytes(layout.total_bytes()), layout.block_count(), codec::to_hex(layout.digest()),
                      human_bytes(delta_.begin.total_bytes), codec::to_hex(delta_.begin.layout_digest)),
          "the image that the delta was made for");
    for (const auto& [id, target] : delta_.targets)
      if (!layout.contains(id))
        return fail(context_, what_,
                    codec::Failure{codec::errc::block_out_of_range, options_.file,
                                   fmt::format("tensor {}, block {}", raw(id.tensor), raw(id.block))});
    return 0;
  }

  /// Slots that a killed run left; under the image's lock, so no living one uses them.
  Done recover_slots() {
    const std::vector<fs::path> slots = slots_left();
    if (slots.empty()) return 0;
    if (const Done done = hold_engines(); done != 0) return done;
    for (const fs::path& slot : slots) {
      auto recovered = relay::recover_slot(slot, *image_);
      if (!recovered) return fail(context_, what_, recovered.error());
      if (*recovered) context_.detail("completed the block that an earlier run left half written");
    }
    return 0;
  }

  /// Is the image at the base, on the way, or at the version? Anything else ends here.
  Done compare() {
    auto found = relay::hash_image(*image_, options_.threads, never_);
    if (!found) return fail(context_, what_, found.error());
    found_digest_ = codec::digest_of(std::span<const Digest>(*found));
    table_.emplace(std::move(*found));
    const codec::Layout& layout = *image_->layout();
    for (const auto& [id, target] : delta_.targets) {
      const std::uint64_t ordinal = layout.ordinal(id);
      // The summary has each block once, so no target contradicts another.
      if (!table_->set_target(ordinal, target)) return fail(context_, what_, contradiction());
      remaining_ += table_->base()[ordinal] != target ? 1 : 0;
    }
    const bool at_base = found_digest_ == delta_.begin.base_image;
    const auto folded = table_->fold();
    if (codec::digest_of(std::span<const Digest>(folded)) != delta_.end.image)
      return at_base ? fail(context_, what_, contradiction()) : wrong_base("");
    if (at_base || remaining_ == 0) return 0;
    return rehearse();
  }

  /// The image is neither base nor version, but what the delta does not touch is right: an earlier run was cut off, or
  /// this is another version. Only when every remaining block decodes to its target is a byte written.
  Done rehearse() {
    auto reader = codec::DeltaFileReader::open(options_.file, verifier());
    if (!reader) return fail(context_, what_, reader.error());
    codec::BlockDecoder decoder;
    std::vector<std::byte> current, next;
    while (true) {
      auto record = (*reader)->next();
      if (!record) return fail(context_, what_, record.error());
      if (*record == nullptr) return 0;
      if ((*record)->header.type != codec::RecordType::frame) continue;
      auto frame = codec::FrameView::parse((*record)->payload());
      if (!frame) return fail(context_, what_, codec::Failure{frame.error(), options_.file, "FRAME"});
      for (const codec::FrameEntry& entry : frame->entries) {
        const codec::TensorSpec& tensor = image_->layout()->tensor(entry.id.tensor);
        if (table_->base()[image_->layout()->ordinal(entry.id)] == entry.target) continue;
        current.resize(image_->layout()->size_of(entry.id));
        next.resize(current.size());
        if (auto read = image_->read_block(entry.id, current); !read) return fail(context_, what_, read.error());
        const codec::Bytes base = codec::needs_base(entry.encoding) ? codec::Bytes(current) : codec::Bytes();
        const auto decoded = decoder.decode(entry, frame->tables, tensor.dtype, base, next);
        if (!decoded || *decoded != entry.target)
          return wrong_base(fmt::format("block {} of {} is at neither of them; ", raw(entry.id.block),
                                        codec::display_name(tensor.name)));
      }
    }
  }

  Done wrong_base(const std::string& particulars) const {
    const auto stated = stated_version(options_.image);
    const std::string states =
        !stated ? ""
                : fmt::format(" and states version {}{}", raw(stated->version),
                              stated->applying ? fmt::format(", on the way to {}", raw(stated->target)) : "");
    return context_.fail(
        ExitCode::precondition, what_,
        fmt::format("the image is at neither the delta's base v{} ({}) nor its version v{} ({}); {}"
                    "the image has digest {}{}",
                    raw(delta_.begin.base), codec::to_hex(delta_.begin.base_image), raw(delta_.identity.version),
                    codec::to_hex(delta_.end.image), particulars, codec::to_hex(found_digest_), states),
        "the deltas between, in order, or a full copy; nothing was written");
  }

  codec::Failure contradiction() const {
    return {codec::errc::malformed_payload, options_.file, "its frames do not lead from its base to its version"};
  }

  /// Every file of the version is in the delta or already there; those that differ will be written.
  Done compare_companions() {
    for (const codec::CompanionFile& file : delta_.end.companions) {
      auto content =
          relay::read_file(relay::FileOps::real(), fs::path(options_.image) / file.name, codec::file_payload_bytes_max);
      if (content && codec::sha256_of(*content) == file.sha256) continue;
      if (std::ranges::find(delta_.files, file) == delta_.files.end())
        return context_.fail(ExitCode::precondition, what_,
                             file.name + " is not as the delta's base has it, and the delta does not carry it",
                             "copy " + file.name + " from the base; nothing was written");
      files_due_.push_back(file.name);
    }
    return 0;
  }

  Done write() {
    if (remaining_ > 0 || !files_due_.empty()) {
      if (const Done done = hold_engines(); done != 0) return done;
      relay::ImageMarker marker;
      marker.version = delta_.begin.base;
      marker.applying = true;
      marker.target = delta_.identity.version;
      marker.digest = delta_.begin.base_image;
      if (auto written = image_->write_marker(marker); !written) return fail(context_, what_, written.error());
      if (const Done done = apply_records(); done != 0) return done;
    }
    // Also when nothing was left to do: the run that did it may have died before its sync.
    if (auto synced = image_->sync(); !synced) return fail(context_, what_, synced.error());
    if (auto same = image_->check_identity(); !same) return fail(context_, what_, same.error());
    if (auto written = image_->write_marker(committed_marker()); !written)
      return fail(context_, what_, written.error());
    image_->release_engines();
    for (const fs::path& slot : slots_left())
      if (auto removed = relay::FileOps::real().remove(slot); !removed) return fail(context_, what_, removed.error());
    return 0;
  }

  relay::ImageMarker committed_marker() const {
    relay::ImageMarker marker;
    marker.version = delta_.identity.version;
    marker.digest = delta_.end.image;
    for (const auto& [id, target] : delta_.targets) {
      const std::string& name = image_->layout()->tensor(id.tensor).name;
      if (marker.changed_tensors.empty() || marker.changed_tensors.back() != name)
        marker.changed_tensors.push_back(name);
    }
    return marker;
  }

  Done hold_engines() {
    const auto deadline = pace_.now() + context_.timeout;
    while (true) {
      auto held = image_->try_hold_engines();
      if (!held) return fail(context_, what_, held.error());
      if (*held) return 0;
      if (pace_.now() >= deadline || !pace_.rest(engine_poll_interval))
        return context_.fail(ExitCode::timed_out, what_,
                             fmt::format("an engine has been reading the image (shared lock on deltarelay.lock) for {}",
                                         human_age(context_.timeout)),
                             "pause the engine, or wait longer with --timeout");
    }
  }

  /// The reader is shared by the workers and gives each record to one of them; the first failure stops all.
  Done apply_records() {
    auto reader = codec::DeltaFileReader::open(options_.file, verifier());
    if (!reader) return fail(context_, what_, reader.error());
    Records records{**reader, {}, {}, {}};
    {
      std::vector<std::jthread> workers;
      for (unsigned i = 1; i < options_.threads; ++i) workers.emplace_back([this, &records, i] { work(records, i); });
      work(records, 0);
    }
    if (!records.failed) return 0;
    context_.note("some blocks may be new by now, each of them whole; the image says \"applying\"");
    return records.failed();
  }

  struct Records {
    codec::DeltaFileReader& reader;
    std::mutex mutex;
    std::function<Done()> failed;  ///< says the first failure, once all workers have ended
    std::atomic<bool> ended{false};

    void fail(std::function<Done()> say) {
      const std::scoped_lock lock(mutex);
      if (!failed) failed = std::move(say);
      ended = true;
    }
  };

  codec::RecordPtr take(Records& records) {
    const std::unique_lock lock(records.mutex);
    if (records.ended) return nullptr;
    auto record = records.reader.next();
    if (record && *record != nullptr) return *record;
    records.ended = true;
    if (!record) records.failed = [this, why = record.error()] { return relayctl::fail(context_, what_, why); };
    return nullptr;
  }

  void work(Records& records, unsigned index) {
    const fs::path slot = fs::path(options_.image) / (std::string(slot_prefix) + std::to_string(index));
    auto worker = relay::ApplyWorker::open(slot, *image_);
    if (!worker) {
      records.fail([this, why = worker.error()] { return relayctl::fail(context_, what_, why); });
      return;
    }
    while (const codec::RecordPtr record = take(records)) {
      if (record->header.type == codec::RecordType::file)
        write_file(*record, records);
      else
        write_frame(**worker, *record, records);
    }
  }

  void write_frame(relay::ApplyWorker& worker, const codec::Record& record, Records& records) {
    const relay::ApplyOutcome outcome = worker.apply(record, *table_);
    applied_ += outcome.applied;
    if (outcome.error) {
      records.fail([this, why = *outcome.error] { return relayctl::fail(context_, what_, why); });
    } else if (!outcome.needs_repair.empty()) {
      const codec::BlockId id = image_->layout()->block_at(outcome.needs_repair.front());
      records.fail([this, id] {
        return context_.fail(ExitCode::failed, what_,
                             fmt::format("block {} of {} does not decode to its target, or was changed meanwhile",
                                         raw(id.block), codec::display_name(image_->layout()->tensor(id.tensor).name)),
                             "the same command again; if that fails too, encode the delta again");
      });
    }
  }

  void write_file(const codec::Record& record, Records& records) {
    auto file = codec::FilePayload::decode(record.payload());
    if (!file) {
      const codec::Failure why{file.error(), options_.file, "FILE"};
      records.fail([this, why] { return relayctl::fail(context_, what_, why); });
      return;
    }
    if (std::ranges::find(files_due_, file->name) == files_due_.end()) return;
    if (auto written = image_->write_companion(*file); !written) {
      records.fail([this, why = written.error()] { return relayctl::fail(context_, what_, why); });
      return;
    }
    ++files_written_;
  }

  std::vector<fs::path> slots_left() const {
    std::vector<fs::path> out;
    auto names = relay::FileOps::real().list(options_.image);
    if (!names) return out;
    for (const std::string& name : *names)
      if (name.starts_with(slot_prefix)) out.push_back(fs::path(options_.image) / name);
    return out;
  }

  int report(double seconds) const {
    const std::uint64_t already = delta_.targets.size() - remaining_;
    const bool nothing_done = remaining_ == 0 && files_due_.empty();
    if (context_.json()) {
      boost::json::object out;
      out["schema"] = "deltarelay.delta-apply/1";
      out["image"] = options_.image;
      out["version"] = std::to_string(raw(delta_.identity.version));
      out["base_version"] = std::to_string(raw(delta_.begin.base));
      out["image_digest"] = codec::to_hex(delta_.end.image);
      out["already"] = nothing_done;
      out["applied_blocks"] = applied_.load();
      out["already_blocks"] = already;
      out["written_files"] = files_written_.load();
      out["verified"] = verifier_.has_value();
      out["seconds"] = seconds;
      context_.print(boost::json::serialize(out) + "\n");
    } else if (!context_.quiet) {
      context_.print(
          nothing_done ? fmt::format("{}: already at version {} ({})\n", options_.image, raw(delta_.identity.version),
                                     codec::to_hex(delta_.end.image))
                       : fmt::format("{}: version {} ({}); {} blocks applied, {} already there, {} files written, {}\n",
                                     options_.image, raw(delta_.identity.version), codec::to_hex(delta_.end.image),
                                     human_count(applied_), human_count(already), files_written_.load(),
                                     human_seconds(seconds)));
    }
    return to_int(ExitCode::ok);
  }

  const codec::ContentVerifier* verifier() const { return verifier_ ? &*verifier_ : nullptr; }

  const Context& context_;
  Pace& pace_;
  const DeltaOptions& options_;
  const std::string what_;
  std::optional<codec::ContentVerifier> verifier_;
  DeltaSummary delta_;
  std::unique_ptr<relay::Image> image_;
  std::optional<relay::DigestTable> table_;
  Digest found_digest_;
  std::uint64_t remaining_ = 0;  ///< blocks that were not at their target when they were hashed
  std::vector<std::string> files_due_;
  std::atomic<std::uint64_t> applied_{0}, files_written_{0};
  const std::atomic<bool> never_{false};
};

}  // namespace

int delta_apply(const Context& context, Pace& pace, const DeltaOptions& options) {
  return Apply(context, pace, options).run();
}

}  // namespace deltarelay::relayctl
