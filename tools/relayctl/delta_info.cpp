// `delta info`: the file alone, all of it.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "tools/relayctl/delta_actions.hpp"
#include "tools/relayctl/delta_summary.hpp"
#include "tools/relayctl/failures.hpp"

namespace deltarelay::relayctl {

int delta_info(const Context& context, const DeltaOptions& options) {
  std::optional<codec::ContentVerifier> verifier;
  if (!options.verify_key.empty()) {
    auto loaded = codec::ContentVerifier::load(options.verify_key);
    if (!loaded) return fail(context, "cannot use the key", loaded.error());
    verifier = std::move(*loaded);
  }
  auto summary = read_delta(options.file, verifier ? &*verifier : nullptr);
  if (!summary) return fail(context, "cannot read the delta", summary.error());
  if (context.json()) {
    auto out = summary_json(*summary);
    out["verified"] = verifier.has_value();
    context.print(boost::json::serialize(out) + "\n");
  } else {
    context.print(summary_text(*summary, verifier.has_value()));
  }
  return to_int(ExitCode::ok);
}

}  // namespace deltarelay::relayctl
