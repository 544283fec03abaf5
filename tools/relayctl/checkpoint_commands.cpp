#include "tools/relayctl/checkpoint_commands.hpp"

#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codec/digest.hpp"
#include "config/units.hpp"
#include "tools/relayctl/checkpoint_diff.hpp"
#include "tools/relayctl/checkpoint_text.hpp"
#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/count_option.hpp"
#include "tools/relayctl/failures.hpp"
#include "tools/relayctl/interruption.hpp"
#include "tools/synthetic/generator.hpp"
#include "tools/synthetic/trainer.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::relayctl {
namespace {

using codec::Checked;
using codec::Failure;

bool about_masters(const Failure& failure) {
  using codec::errc;
  return failure.code == errc::base_digest_mismatch ||
         (failure.code == errc::tensor_size_mismatch && failure.where.ends_with(".masters"));
}

/// How `make` and `step` end when they cannot: refusals that only they know, and those of every command.
int end_without(const Context& context, const std::string& directory, const Failure& failure) {
  using namespace boost::system::errc;
  const std::string what = "cannot make checkpoint " + directory;
  if (failure.code == make_error_code(operation_canceled)) return Interruption::end(context, what);
  if (failure.code == make_error_code(file_exists))
    return context.fail(ExitCode::precondition, what, failure.text(), "another directory, or remove that one first");
  if (failure.code == make_error_code(invalid_argument))
    return context.fail(ExitCode::usage, what, failure.where + ": " + failure.why, "a smaller " + failure.where);
  if (about_masters(failure))
    return context.fail(ExitCode::invalid, what, failure.text(), "remove the masters to have them drawn anew");
  return fail(context, what, failure);
}

void tell_cleared(const Context& context, const std::vector<std::filesystem::path>& cleared) {
  for (const std::filesystem::path& path : cleared)
    context.note("note: removed " + path.string() + ", which a run that was killed had left");
}

int print_json(const Context& context, const boost::json::object& document) {
  context.print(boost::json::serialize(document) + "\n");
  return to_int(ExitCode::ok);
}

void add_threads(CLI::App& sub, unsigned& threads) {
  threads = synthetic::default_threads();
  add_count(sub, "--threads", threads, {1, 64}, "worker threads; the result does not depend on it");
}

void add_output_options(CLI::App& sub, std::optional<std::size_t>& shards, bool& keep_masters) {
  add_count(sub, "--shards", shards, {1, 100'000}, "number of shard files");
  sub.add_flag_callback(
      "--no-masters", [&keep_masters] { keep_masters = false; },
      "do not keep FP32 masters in DIR.masters (the next step draws them)");
}

void add_make(CLI::App& group, Context& context) {
  struct Options {
    std::string directory;
    synthetic::MakeOptions make;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = group.add_subcommand("make", "Make a checkpoint of a synthetic language model in DIR");
  sub->add_option("DIR", options->directory, "new, or empty")->required();
  sub->add_option_function<std::string>(
         "--size",
         [options](const std::string& text) {
           const auto bytes = config::parse_size(text);
           if (!bytes) throw CLI::ValidationError("--size", "\"" + text + "\" " + bytes.error().why);
           if (*bytes < synthetic::model_bytes_min || *bytes > synthetic::model_bytes_max)
             throw CLI::ValidationError("--size", "\"" + text + "\" is not between 64KiB and 16TiB");
           options->make.bytes = *bytes;
         },
         "of all tensors, such as 256MiB")
      ->type_name("SIZE")
      ->required();
  add_count(*sub, "--seed", options->make.seed, {}, "same seed and size, same bytes")->required()->default_str("");
  sub->add_option_function<std::string>(
         "--dtype",
         [options](const std::string& text) {
           using codec::DType;
           options->make.dtype = text == "bf16" ? DType::BF16 : text == "f16" ? DType::F16 : DType::F32;
         },
         "of the matrices: bf16, f16 or f32")
      ->check(one_of({"bf16", "f16", "f32"}))
      ->default_str("bf16");
  add_output_options(*sub, options->make.shards, options->make.keep_masters);
  add_threads(*sub, options->make.threads);
  command(*sub, context, [&context, options] {
    const Interruption interruption;
    options->make.stop = &interruption.flag();
    const auto made = synthetic::make_checkpoint(options->directory, options->make);
    if (!made) return end_without(context, options->directory, made.error());
    tell_cleared(context, made->cleared);
    if (context.json()) return print_json(context, make_json(options->directory, *made, options->make));
    if (!context.quiet) context.print(make_text(options->directory, *made, options->make));
    return to_int(ExitCode::ok);
  });
}

void add_step(CLI::App& group, Context& context) {
  struct Options {
    std::string directory, from;
    synthetic::StepOptions step;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = group.add_subcommand("step", "Make in DIR the checkpoint that one training step makes of another");
  sub->add_option("DIR", options->directory, "new, or empty")->required();
  sub->add_option("--from", options->from, "the checkpoint before; any, not only a synthetic one")
      ->type_name("DIR")
      ->required();
  sub->add_option_function<std::string>(
         "--change",
         [options](const std::string& text) {
           const auto share = config::parse_percent(text);
           if (!share) throw CLI::ValidationError("--change", "\"" + text + "\" " + share.error().why);
           options->step.change = *share;
         },
         "share of the elements whose bits change, such as 3% (or 0.03)")
      ->type_name("SHARE")
      ->required();
  add_count(*sub, "--seed", options->step.seed, {}, "of the updates")->required()->default_str("");
  add_output_options(*sub, options->step.shards, options->step.keep_masters);
  add_threads(*sub, options->step.threads);
  command(*sub, context, [&context, options] {
    const Interruption interruption;
    options->step.stop = &interruption.flag();
    const auto made = synthetic::step_checkpoint(options->from, options->directory, options->step);
    if (!made) return end_without(context, options->directory, made.error());
    tell_cleared(context, made->cleared);
    if (context.json()) return print_json(context, step_json(options->directory, options->from, *made, options->step));
    if (!context.quiet)
      context.print(step_text(options->directory, options->from, *made, options->step, context.wide()));
    return to_int(ExitCode::ok);
  });
}

void add_diff(CLI::App& group, Context& context) {
  struct Options {
    std::string a, b;
    DiffOptions diff;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = group.add_subcommand(
      "diff", "Compare two checkpoints bit by bit, whatever their shard files; exit 0 when same, 1 when not");
  sub->add_option("A", options->a, "directory, or one .safetensors file")->required();
  sub->add_option("B", options->b, "directory, or one .safetensors file")->required();
  sub->add_flag("--tensors-only", options->diff.tensors_only, "do not compare config.json and other small files");
  add_threads(*sub, options->diff.threads);
  command(*sub, context, [&context, options] {
    const auto diff = diff_checkpoints(options->a, options->b, options->diff);
    if (!diff) {
      // 1 says "differs" here, so what could not be compared must be something else.
      return context.fail(ExitCode::invalid, "cannot compare " + options->a + " and " + options->b, diff.error().text(),
                          try_next_of(diff.error().code));
    }
    if (context.json()) {
      print_json(context, diff_json(*diff));
    } else if (!context.quiet) {
      context.print(diff_text(*diff, context.wide()));
    }
    return to_int(diff->same() ? ExitCode::ok : ExitCode::failed);
  });
}

/// Digest of the block digests, as a refit's END record carries it.
Checked<codec::Digest> content_digest(const codec::Checkpoint& checkpoint, unsigned threads) {
  const auto map = codec::CheckpointMap::open(checkpoint);
  if (!map) return map.error();
  const codec::Layout& layout = map->layout();
  std::vector<codec::Digest> digests(static_cast<std::size_t>(layout.block_count()));
  auto hashed = synthetic::run_jobs(digests.size(), {threads}, [&](std::size_t job, unsigned) -> Checked<void> {
    digests[job] = codec::digest_of(map->block(layout.block_at(job)));
    return {};
  });
  if (!hashed) return hashed.error();
  if (auto same = map->check_unchanged(); !same) return same.error();
  return codec::digest_of(std::span<const codec::Digest>(digests));
}

void add_info(CLI::App& group, Context& context) {
  struct Options {
    std::string directory;
    bool digest = false;
    unsigned threads = 1;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = group.add_subcommand("info", "Describe a checkpoint: tensors, dtypes, sizes, shards, layout digest");
  sub->add_option("DIR", options->directory, "directory, or one .safetensors file")->required();
  sub->add_flag("--digest", options->digest, "read everything and give the digest of the content, too");
  add_threads(*sub, options->threads);
  command(*sub, context, [&context, options] {
    const auto checkpoint = codec::Checkpoint::open(options->directory);
    if (!checkpoint) return fail(context, "cannot read checkpoint " + options->directory, checkpoint.error());
    std::optional<codec::Digest> image;
    if (options->digest) {
      const auto digest = content_digest(*checkpoint, options->threads);
      if (!digest) return fail(context, "cannot read checkpoint " + options->directory, digest.error());
      image = *digest;
    }
    if (context.json()) return print_json(context, info_json(*checkpoint, image));
    context.print(info_text(*checkpoint, image, context.wide()));
    return to_int(ExitCode::ok);
  });
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("checkpoint", "Make synthetic checkpoints; compare and describe any");
  group->require_subcommand(1);
  add_make(*group, context);
  add_step(*group, context);
  add_diff(*group, context);
  add_info(*group, context);
}

}  // namespace deltarelay::relayctl
