// `delta encode`: the same encoder as a root's publish, into a file.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <chrono>
#include <mutex>

#include "codec/delta_file.hpp"
#include "codec/input_file.hpp"
#include "codec/refit_encoder.hpp"
#include "tools/relayctl/checkpoint_pair.hpp"
#include "tools/relayctl/delta_actions.hpp"
#include "tools/relayctl/delta_summary.hpp"
#include "tools/relayctl/failures.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/image_marker.hpp"
#include "tools/relayctl/interruption.hpp"

namespace deltarelay::relayctl {
namespace {

namespace fs = std::filesystem;
using codec::Checked;
using codec::Failure;
using codec::Version;

constexpr std::string_view what = "cannot encode the delta";

bool parse_mesh_id(const std::string& text, codec::MeshId& out) {
  if (text.size() != 2 * out.bytes.size()) return false;
  for (std::size_t i = 0; i < out.bytes.size(); ++i) {
    unsigned value = 0;
    const char* begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, value, 16);
    if (error != std::errc{} || end != begin + 2) return false;
    out.bytes[i] = static_cast<std::byte>(value);
  }
  return true;
}

Checked<codec::FilePayload> read_companion(const fs::path& directory, const std::string& name) {
  auto file = codec::InputFile::open(directory / name);
  if (!file) return file.error();
  codec::FilePayload out;
  out.name = name;
  out.content.resize(file->identity().bytes);
  if (auto read = file->read_at(0, out.content); !read) return read.error();
  if (auto same = file->check_unchanged(); !same) return same.error();
  out.sha256 = codec::sha256_of(out.content);
  return out;
}

class Encode {
 public:
  Encode(const Context& context, const DeltaOptions& options) : context_(context), options_(options) {}

  int run() {
    if (int code = prepare(); code != 0) return code;
    int code = 0;
    pair_ = CheckpointPair::open(context_, options_.base, options_.next, options_.block_bytes, code);
    if (pair_ == nullptr) return code;
    const auto began = std::chrono::steady_clock::now();
    const Interruption interruption;
    if (auto written = write_file(); !written) {
      const bool stopped = written.error().code == make_error_code(boost::system::errc::operation_canceled);
      return stopped ? Interruption::end(context_, what) : fail(context_, what, written.error());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return report(took.count());
  }

 private:
  /// Everything that can be refused before the first byte is read.
  int prepare() {
    const auto base = options_.base_version ? Version{*options_.base_version} : stated_base();
    const auto version = options_.version ? Version{*options_.version} : codec::next(base);
    if (version <= base)
      return context_.fail(ExitCode::usage, what,
                           fmt::format("version {} is not above base version {}", raw(version), raw(base)),
                           "--version with a higher number");
    base_version_ = base;
    identity_ = {{}, codec::Epoch{options_.epoch}, version};
    if (!options_.mesh_id.empty() && !parse_mesh_id(options_.mesh_id, identity_.mesh))
      return context_.fail(ExitCode::usage, what, "\"" + options_.mesh_id + "\" is not a mesh id", "32 hex digits");
    const fs::path out = options_.file;
    if (std::error_code ignored; fs::is_directory(out, ignored) || out.extension() == ".safetensors")
      return context_.fail(ExitCode::usage, what, out.string() + " would overwrite a checkpoint",
                           "a file of its own, like step.delta");
    if (options_.key.empty()) return 0;
    auto signer = codec::ContentSigner::load(options_.key);
    if (!signer) return fail(context_, "cannot use the key", signer.error());
    signer_ = std::move(*signer);
    return 0;
  }

  Version stated_base() const {
    const auto stated = stated_version(options_.base);
    return stated && !stated->applying ? stated->version : Version{};
  }

  Checked<void> write_file() {
    auto writer = codec::DeltaFileWriter::create(options_.file, identity_, signer_ ? &*signer_ : nullptr);
    if (!writer) return writer.error();
    return write(**writer);
  }

  Checked<void> write(codec::DeltaFileWriter& writer) {
    codec::RefitControl control;
    const auto next = [read = pair_->next_reader(), &control](codec::BlockId id, codec::MutableBytes scratch) {
      if (Interruption::requested()) control.cancel = true;
      return read(id, scratch);
    };
    const codec::RefitInput input{pair_->layout(), pair_->base_reader(), next, {}};
    codec::RefitOptions refit;
    refit.threads = options_.threads;
    std::mutex mutex;
    std::optional<Failure> unwritten;
    auto encoded = codec::encode_refit(input, refit, control, [&](codec::EncodedFrame&& frame) {
      if (auto added = writer.add_frame(frame); !added) {
        const std::scoped_lock lock(mutex);
        if (!unwritten) unwritten = added.error();
        control.cancel = true;
      }
    });
    if (unwritten) return *unwritten;
    // Which file changed says more than in which tensor that was seen.
    if (auto same = pair_->check_unchanged(); !same) return same.error();
    if (!encoded) return encoded.error();
    codec::EndPayload end;
    if (auto added = add_companions(writer, end); !added) return added;
    end.frame_count = encoded->frames;
    end.changed_blocks = encoded->stats.changed_blocks;
    end.changed_elements = encoded->stats.changed_elements;
    end.image = codec::digest_of(std::span<const codec::Digest>(encoded->next_digests));
    end.layout_digest = pair_->layout().digest();
    codec::BeginPayload begin;
    begin.base = base_version_;
    begin.base_image = codec::digest_of(std::span<const codec::Digest>(encoded->base_digests));
    begin.layout_digest = end.layout_digest;
    begin.block_bytes = options_.block_bytes;
    begin.total_bytes = pair_->layout().total_bytes();
    elements_ = encoded->stats.elements;
    if (auto same = pair_->check_unchanged(); !same) return same.error();
    return writer.finish(begin, end);
  }

  /// All of NEW's are in END; those that the base has as they are do not travel.
  Checked<void> add_companions(codec::DeltaFileWriter& writer, codec::EndPayload& end) {
    const auto& in_base = pair_->base().companions();
    for (const std::string& name : pair_->next().companions()) {
      auto file = read_companion(pair_->next().directory(), name);
      if (!file) return file.error();
      end.companions.push_back({name, file->content.size(), file->sha256});
      if (std::ranges::binary_search(in_base, name)) {
        auto old = read_companion(pair_->base().directory(), name);
        if (!old) return old.error();
        if (old->sha256 == file->sha256) continue;
      }
      if (auto added = writer.add_file(*file); !added) return added.error();
    }
    return {};
  }

  /// Reads the file back: what is reported was proved to be on disk.
  int report(double seconds) const {
    std::optional<codec::ContentVerifier> verifier;
    if (signer_) verifier = signer_->verifier();
    auto summary = read_delta(options_.file, verifier ? &*verifier : nullptr);
    if (!summary) return fail(context_, "cannot read back the delta", summary.error());
    const double changed =
        elements_ == 0 ? 0 : static_cast<double>(summary->end.changed_elements) / static_cast<double>(elements_);
    const double rate = static_cast<double>(summary->begin.total_bytes) / std::max(seconds, 1e-9);
    if (context_.json()) {
      auto out = summary_json(*summary);
      out["elements"] = elements_;
      out["changed_fraction"] = changed;
      out["seconds"] = seconds;
      out["dense_bytes_per_second"] = rate;
      context_.print(boost::json::serialize(out) + "\n");
    } else if (context_.format == OutputFormat::name) {
      context_.print(options_.file + "\n");
    } else if (!context_.quiet) {
      context_.print(summary_text(*summary, verifier.has_value()));
      context_.print(fmt::format("\n{} changed; encoded in {}, {} of checkpoint\n", human_percent(100 * changed, 2),
                                 human_seconds(seconds), human_rate(rate)));
    }
    return to_int(ExitCode::ok);
  }

  const Context& context_;
  const DeltaOptions& options_;
  std::unique_ptr<CheckpointPair> pair_;
  std::optional<codec::ContentSigner> signer_;
  codec::DeltaIdentity identity_;
  Version base_version_{};
  std::uint64_t elements_ = 0;
};

}  // namespace

int delta_encode(const Context& context, const DeltaOptions& options) {
  return Encode(context, options).run();
}

}  // namespace deltarelay::relayctl
