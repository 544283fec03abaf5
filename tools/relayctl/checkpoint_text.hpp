// Reports of `relayctl checkpoint` as text and as JSON. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "codec/checkpoint.hpp"
#include "tools/relayctl/checkpoint_diff.hpp"
#include "tools/synthetic/generator.hpp"
#include "tools/synthetic/trainer.hpp"

namespace deltarelay::relayctl {

[[nodiscard]] std::string make_text(const std::string& directory, const synthetic::MakeReport& report,
                                    const synthetic::MakeOptions& options);
/// Schema deltarelay.checkpoint.make/1.
[[nodiscard]] boost::json::object make_json(const std::string& directory, const synthetic::MakeReport& report,
                                            const synthetic::MakeOptions& options);

/// `by_exponent` adds how often weights of each size changed.
[[nodiscard]] std::string step_text(const std::string& directory, const std::string& from,
                                    const synthetic::StepReport& report, const synthetic::StepOptions& options,
                                    bool by_exponent);
/// Schema deltarelay.checkpoint.step/1.
[[nodiscard]] boost::json::object step_json(const std::string& directory, const std::string& from,
                                            const synthetic::StepReport& report, const synthetic::StepOptions& options);

/// At most 20 differing tensors, or all of them.
[[nodiscard]] std::string diff_text(const CheckpointDiff& diff, bool all);
/// Schema deltarelay.checkpoint.diff/1, with every difference.
[[nodiscard]] boost::json::object diff_json(const CheckpointDiff& diff);

/// `image`: the digest of the content, where it was asked for. `all` lists every tensor.
[[nodiscard]] std::string info_text(const codec::Checkpoint& checkpoint, const std::optional<codec::Digest>& image,
                                    bool all);
/// Schema deltarelay.checkpoint.info/1, with every tensor.
[[nodiscard]] boost::json::object info_json(const codec::Checkpoint& checkpoint,
                                            const std::optional<codec::Digest>& image);

}  // namespace deltarelay::relayctl
