#include "tools/relayctl/delta_commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>
#include <thread>

#include "tools/relayctl/count_option.hpp"
#include "tools/relayctl/delta_actions.hpp"

namespace deltarelay::relayctl {
namespace {

constexpr unsigned threads_max = 256;
constexpr unsigned threads_default_max = 8;

/// CLI11's way: an empty string is consent.
std::string block_size(const std::string& text) {
  std::uint32_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const bool good = error == std::errc{} && end == text.data() + text.size() && std::has_single_bit(bytes) &&
                    bytes >= codec::block_bytes_min && bytes <= codec::block_bytes_max;
  return good ? "" : "\"" + text + "\" is no power of two from 4096 to 4194304";
}

void add_threads(CLI::App& sub, DeltaOptions& options) {
  add_count(sub, "--threads", options.threads, {1, threads_max}, "worker threads");
}

void add_pair(CLI::App& sub, DeltaOptions& options) {
  sub.add_option("BASE", options.base, "checkpoint that the receivers hold: a directory or one file")->required();
  sub.add_option("NEW", options.next, "checkpoint that they are to hold")->required();
  sub.add_option("--block-bytes", options.block_bytes, "block size: a power of two from 4096 to 4194304")
      ->check(block_size)
      ->capture_default_str();
  add_threads(sub, options);
}

void add_verify_key(CLI::App& sub, DeltaOptions& options) {
  sub.add_option("--verify-key", options.verify_key, "content.pub: refuse every record that this key did not sign");
}

void add_encode(CLI::App& delta, Context& context, const std::shared_ptr<DeltaOptions>& options) {
  CLI::App* sub = delta.add_subcommand("encode", "Write the change from BASE to NEW to a file");
  add_pair(*sub, *options);
  // Hides the global -o here: the contract gives it to the file. The output format is still --output.
  sub->add_option("-o,--out", options->file, "the delta file; takes this name only when it is whole")->required();
  sub->add_option("--key", options->key, "content.key: sign every record; unsigned by default");
  add_count(*sub, "--version", options->version, {1}, "version of NEW; by default one more than BASE's");
  add_count(*sub, "--base-version", options->base_version, {},
            "version of BASE; by default what its deltarelay.json says");
  add_count(*sub, "--epoch", options->epoch, {}, "epoch that the records name");
  sub->add_option("--mesh-id", options->mesh_id, "mesh that the records name, 32 hex digits");
  command(*sub, context, [&context, options] { return delta_encode(context, *options); });
}

}  // namespace

void add_delta_commands(CLI::App& app, Context& context, Pace& pace) {
  CLI::App* delta = app.add_subcommand("delta", "Encode, apply and explain refits as files, offline");
  delta->require_subcommand(1);
  auto options = std::make_shared<DeltaOptions>();
  options->threads = std::clamp(std::thread::hardware_concurrency(), 1U, threads_default_max);

  add_encode(*delta, context, options);

  CLI::App* apply = delta->add_subcommand("apply", "Turn IMAGE from the base of F into its version");
  apply->add_option("F", options->file, "delta file")->required();
  apply->add_option("IMAGE", options->image, "checkpoint directory; written in place")->required();
  add_verify_key(*apply, *options);
  add_threads(*apply, *options);
  command(*apply, context, [&context, &pace, options] { return delta_apply(context, pace, *options); });

  CLI::App* info = delta->add_subcommand("info", "Check all of F and show what it holds");
  info->add_option("F", options->file, "delta file")->required();
  add_verify_key(*info, *options);
  command(*info, context, [&context, options] { return delta_info(context, *options); });

  CLI::App* stats = delta->add_subcommand("stats", "Show what changed from BASE to NEW and what it costs to send");
  add_pair(*stats, *options);
  command(*stats, context, [&context, options] { return delta_stats(context, *options); });
}

}  // namespace deltarelay::relayctl
