#include "tools/relayctl/bench_commands.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "config/units.hpp"
#include "tools/bench/trained_pair.hpp"
#include "tools/relayctl/bench_codec.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/count_option.hpp"
#include "tools/synthetic/model.hpp"

namespace deltarelay::relayctl {
namespace {

// Held in memory about six times: base, next, image, a copy, and dense frames.
constexpr std::uint64_t bytes_max = 64ull << 30;

std::uint64_t parse_bytes(const std::string& text) {
  const auto bytes = config::parse_size(text);
  if (!bytes) throw CLI::ValidationError("--size", "\"" + text + "\" " + bytes.error().why);
  if (*bytes < synthetic::model_bytes_min || *bytes > bytes_max)
    throw CLI::ValidationError("--size", "\"" + text + "\" is not between 64KiB and 64GiB");
  return *bytes;
}

double parse_change(const std::string& text) {
  const auto share = config::parse_percent(text);
  if (!share) throw CLI::ValidationError("--change", "\"" + text + "\" " + share.error().why);
  if (*share <= 0 || *share > 1)
    throw CLI::ValidationError("--change", "\"" + text + "\" is not above 0 % and at most 100 %");
  return *share;
}

double parse_seconds(const std::string& text) {
  const auto time = config::parse_duration(text);
  if (!time) throw CLI::ValidationError("--seconds", "\"" + text + "\" " + time.error().why);
  return std::chrono::duration<double>(*time).count();
}

}  // namespace

void add_bench_commands(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("bench", "Measure what this machine can do");
  group->require_subcommand(1);
  auto options = std::make_shared<BenchCodecOptions>();
  options->bytes = bench::model_bytes;
  options->changes = {0.01, 0.03, 0.05};
  options->seconds = 5;
  CLI::App* sub = group->add_subcommand(
      "codec", "Rates of encoding and decoding per core, beside memcpy and a compare in the same run");
  sub->add_option_function<std::string>(
         "--size", [options](const std::string& text) { options->bytes = parse_bytes(text); },
         "of the synthetic checkpoint; below the size of the caches the ratios say nothing about refits")
      ->type_name("SIZE")
      ->default_str("128MiB");
  sub->add_option_function<std::vector<std::string>>(
         "--change",
         [options](const std::vector<std::string>& texts) {
           options->changes.clear();
           for (const std::string& text : texts) options->changes.push_back(parse_change(text));
         },
         "shares of the elements that change, one table each")
      ->delimiter(',')
      ->type_name("SHARE,...")
      ->default_str("1%,3%,5%");
  add_count(*sub, "--seed", options->seed, {}, "of the checkpoint; same seed, same payload");
  add_count(*sub, "--threads", options->threads, {1, 256}, "measure on so many cores at once; rates stay per core");
  sub->add_option_function<std::string>(
         "--seconds", [options](const std::string& text) { options->seconds = parse_seconds(text); },
         "how long to measure each change, such as 5s; three rounds at least")
      ->type_name("DURATION")
      ->default_str("5s");
  command(*sub, context, [&context, options] { return bench_codec(context, *options); });
}

}  // namespace deltarelay::relayctl
