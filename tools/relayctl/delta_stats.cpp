// `delta stats`: what changed, what the codec makes of it, and how far that is from the bounds.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "codec/record.hpp"
#include "codec/refit_encoder.hpp"
#include "tools/relayctl/change_stats.hpp"
#include "tools/relayctl/checkpoint_pair.hpp"
#include "tools/relayctl/delta_actions.hpp"
#include "tools/relayctl/delta_summary.hpp"
#include "tools/relayctl/failures.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/kind_stats.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;
using codec::Checked;

constexpr std::uint64_t blocks_per_turn = 16;
constexpr std::size_t exponent_rows_max = 24;  // of each dtype, in text

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

class Stats {
 public:
  Stats(const Context& context, const DeltaOptions& options) : context_(context), options_(options) {}

  int run() {
    int code = 0;
    pair_ = CheckpointPair::open(context_, options_.base, options_.next, options_.block_bytes, code);
    if (pair_ == nullptr) return code;
    dense_bytes_ = pair_->layout().total_bytes();
    kinds_.emplace(pair_->layout());
    auto measured = encode();
    if (measured) measured = scan();
    // Which file changed says more than in which tensor that was seen.
    if (auto same = pair_->check_unchanged(); !same) return fail(context_, what, same.error());
    if (!measured) return fail(context_, what, measured.error());
    changes_ = kinds_->changes();
    bounds_ = changes_.bounds();
    if (context_.json())
      context_.print(json::serialize(document()) + "\n");
    else
      context_.print(text());
    return to_int(ExitCode::ok);
  }

 private:
  static constexpr std::string_view what = "cannot compare the checkpoints";

  Checked<void> encode() {
    const codec::RefitInput input{pair_->layout(), pair_->base_reader(), pair_->next_reader(), {}};
    codec::RefitOptions refit;
    refit.threads = options_.threads;
    codec::RefitControl control;
    std::mutex mutex;
    auto encoded = codec::encode_refit(input, refit, control, [&](codec::EncodedFrame&& frame) {
      const std::scoped_lock lock(mutex);
      kinds_->add_frame(frame.payload);
    });
    if (!encoded) return encoded.error();
    stats_ = encoded->stats;
    frames_ = encoded->frames;
    payload_bytes_ = control.payload_bytes;
    wire_bytes_ = payload_bytes_ + frames_ * codec::record_header_bytes;
    return {};
  }

  Checked<void> scan() {
    std::atomic<std::uint64_t> next{0};
    std::mutex mutex;
    std::optional<codec::Failure> failure;
    const auto work = [&] {
      KindChanges mine;
      auto failed = scan_blocks(next, mine);
      const std::scoped_lock lock(mutex);
      kinds_->merge(mine);
      if (failed && !failure) failure = std::move(failed);
    };
    {
      std::vector<std::jthread> workers;
      for (unsigned i = 1; i < options_.threads; ++i) workers.emplace_back(work);
      work();
    }
    if (failure) return *failure;
    return {};
  }

  std::optional<codec::Failure> scan_blocks(std::atomic<std::uint64_t>& next, KindChanges& out) const {
    const codec::Layout& layout = pair_->layout();
    const auto read_base = pair_->base_reader(), read_next = pair_->next_reader();
    std::vector<std::byte> old_block(layout.block_bytes()), new_block(layout.block_bytes());
    while (true) {
      const std::uint64_t first = next.fetch_add(blocks_per_turn);
      if (first >= layout.block_count()) return std::nullopt;
      const std::uint64_t end = std::min(first + blocks_per_turn, layout.block_count());
      for (std::uint64_t ordinal = first; ordinal < end; ++ordinal) {
        const codec::BlockId id = layout.block_at(ordinal);
        const auto base = read_base(id, old_block), changed = read_next(id, new_block);
        const codec::TensorSpec& tensor = layout.tensor(id.tensor);
        if (!base || !changed) return codec::Failure{codec::errc::file_changed, codec::display_name(tensor.name), {}};
        out[static_cast<std::size_t>(kinds_->kind_of(id.tensor))].add_block(tensor.dtype, *base, *changed);
      }
    }
  }

  json::object document() const {
    json::object out;
    out["schema"] = "deltarelay.delta-stats/1";
    out["dense_bytes"] = dense_bytes_;
    out["tensors"] = pair_->layout().tensors().size();
    out["elements"] = changes_.elements();
    out["changed_elements"] = changes_.changed();
    out["changed_fraction"] =
        share(static_cast<double>(changes_.changed()), static_cast<double>(changes_.elements())) / 100;
    out["blocks"] = pair_->layout().block_count();
    out["changed_blocks"] = stats_.changed_blocks;
    out["frames"] = frames_;
    out["payload_bytes"] = payload_bytes_;
    out["wire_bytes"] = wire_bytes_;
    out["overhead_bytes"] = stats_.overhead_bytes;
    out["encodings"] = encodings_json(stats_);
    out["order0_bound_bytes"] = std::ceil(bounds_.order0_bytes);
    out["given_exponent_bound_bytes"] = std::ceil(bounds_.given_exponent_bytes);
    out["shared_bytes"] = kinds_->shared_bytes();
    out["bytes_per_changed_element"] = changes_.changed() == 0 ? json::value(nullptr) : json::value(per_change());
    out["kinds"] = kinds_->json();
    json::array steps;
    for (const StepRow& row : changes_.steps()) {
      json::object step;
      step["magnitude_min"] = row.magnitude_min;
      step["magnitude_max"] = row.magnitude_max;
      step["up"] = row.up;
      step["down"] = row.down;
      steps.push_back(std::move(step));
    }
    out["steps"] = std::move(steps);
    out["dtypes"] = dtypes_json();
    return out;
  }

  json::array dtypes_json() const {
    json::array out;
    for (std::size_t d = 0; d < codec::dtype_count; ++d) {
      const DTypeStats& stats = changes_.dtypes()[d];
      if (stats.elements == 0) continue;
      const auto dtype = static_cast<codec::DType>(d);
      const ExponentField field = exponent_field(dtype);
      json::object row;
      row["dtype"] = codec::dtype_name(dtype);
      row["elements"] = stats.elements;
      row["changed_elements"] = stats.changed;
      json::array exponents;
      for (std::size_t e = 0; field.bits > 0 && e < stats.exponents.size(); ++e) {
        if (stats.exponents[e].elements == 0) continue;
        json::object exponent;
        exponent["exponent"] = static_cast<int>(e) - field.bias;
        exponent["elements"] = stats.exponents[e].elements;
        exponent["changed_elements"] = stats.exponents[e].changed;
        exponents.push_back(std::move(exponent));
      }
      row["exponents"] = std::move(exponents);
      out.push_back(std::move(row));
    }
    return out;
  }

  std::string text() const {
    const auto dense = static_cast<double>(dense_bytes_);
    const auto of_dense = [&](double bytes) { return human_percent(share(bytes, dense), 3); };
    const auto wire = static_cast<double>(wire_bytes_);
    Table table({{""}, {""}, {"", Align::right}, {""}});
    table.add({"dense", human_bytes(dense_bytes_), "100 %",
               fmt::format("{} tensors, {} blocks", pair_->layout().tensors().size(), pair_->layout().block_count())});
    table.add(
        {"changed", human_count(changes_.changed()),
         human_percent(share(static_cast<double>(changes_.changed()), static_cast<double>(changes_.elements())), 3),
         fmt::format("of {} elements; {} blocks", human_count(changes_.elements()), stats_.changed_blocks)});
    table.add({"sent", human_bytes(wire_bytes_), of_dense(wire),
               wire_bytes_ == 0 ? "nothing to send"
                                : fmt::format("{} frames; {:.1f} x smaller than dense; {:.3f} B a change", frames_,
                                              dense / wire, per_change())});
    if (changes_.changed() > 0) {
      table.add({"order-0 bound", human_bytes(static_cast<std::uint64_t>(bounds_.order0_bytes)),
                 of_dense(bounds_.order0_bytes), versus(wire, bounds_.order0_bytes)});
      table.add({"given exponents", human_bytes(static_cast<std::uint64_t>(bounds_.given_exponent_bytes)),
                 of_dense(bounds_.given_exponent_bytes), versus(wire, bounds_.given_exponent_bytes)});
    }
    std::string out = table.text();
    if (stats_.changed_blocks == 0) return out;
    out += '\n';
    out += encodings_text(stats_);
    out += '\n';
    out += kinds_->text();
    if (changes_.changed() == 0) return out;
    out += '\n';
    out += steps_text();
    out += exponents_text();
    return out;
  }

  [[nodiscard]] double per_change() const {
    return static_cast<double>(wire_bytes_) / static_cast<double>(changes_.changed());
  }

  static std::string versus(double wire, double bound) {
    return bound < 1 ? "" : fmt::format("sent is {:.3f} of it", wire / bound);
  }

  std::string steps_text() const {
    Table table({{"step"}, {"up", Align::right}, {"down", Align::right}, {"of changes", Align::right}, {""}});
    const auto changed = static_cast<double>(changes_.changed());
    for (const StepRow& row : changes_.steps()) {
      const auto count = static_cast<double>(row.up + row.down);
      table.add({row.magnitude_min == row.magnitude_max ? std::to_string(row.magnitude_min)
                                                        : fmt::format("{} to {}", row.magnitude_min, row.magnitude_max),
                 human_count(row.up), human_count(row.down), human_percent(share(count, changed), 2),
                 bar(count / changed, 20, context_.plain_ascii())});
    }
    return table.text();
  }

  static std::string exponent_name(const ExponentField& field, std::size_t exponent) {
    if (exponent == 0 && field.shift > 0) return "0, subnormal";
    if (field.all_ones_is_special && exponent + 1 == std::size_t{1} << field.bits) return "inf, NaN";
    return fmt::format("2^{}", static_cast<int>(exponent) - field.bias);
  }

  /// Per dtype with exponents: those that change most, all of them with -o wide.
  std::string exponents_text() const {
    std::string out;
    for (std::size_t d = 0; d < codec::dtype_count; ++d) {
      const DTypeStats& stats = changes_.dtypes()[d];
      const auto dtype = static_cast<codec::DType>(d);
      const ExponentField field = exponent_field(dtype);
      if (stats.changed == 0 || field.bits == 0) continue;
      std::uint64_t threshold = 1;
      if (!context_.wide()) {
        std::vector<std::uint64_t> counts;
        for (const ExponentStats& exponent : stats.exponents) counts.push_back(exponent.changed);
        std::ranges::sort(counts, std::greater<>());
        if (counts.size() > exponent_rows_max) threshold = std::max(threshold, counts[exponent_rows_max - 1]);
      }
      Table table({{std::string(codec::dtype_name(dtype)) + " old value"},
                   {"elements", Align::right},
                   {"changed", Align::right},
                   {"rate", Align::right},
                   {""}});
      for (std::size_t e = 0; e < stats.exponents.size(); ++e) {
        const ExponentStats& exponent = stats.exponents[e];
        if (exponent.elements == 0 || exponent.changed < (context_.wide() ? 0 : threshold)) continue;
        const double rate = share(static_cast<double>(exponent.changed), static_cast<double>(exponent.elements));
        table.add({exponent_name(field, e), human_count(exponent.elements), human_count(exponent.changed),
                   human_percent(rate, 2), bar(rate / 100, 20, context_.plain_ascii())});
      }
      out += '\n';
      out += table.text();
    }
    return out;
  }

  const Context& context_;
  const DeltaOptions& options_;
  std::unique_ptr<CheckpointPair> pair_;
  std::optional<KindTable> kinds_;
  codec::FrameStats stats_;
  ChangeStats changes_;
  ChangeBounds bounds_;
  std::uint64_t dense_bytes_ = 0, frames_ = 0, payload_bytes_ = 0, wire_bytes_ = 0;
};

}  // namespace

int delta_stats(const Context& context, const DeltaOptions& options) {
  return Stats(context, options).run();
}

}  // namespace deltarelay::relayctl
