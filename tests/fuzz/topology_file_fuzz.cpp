// topology.yaml of any bytes: a model and a plan, or findings with places inside the text; and a plan whose parents
// have lower ranks.
#include <algorithm>
#include <string_view>

#include "config/topology_file.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using deltarelay::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = deltarelay::config::parse_topology("f", text);
  promise(loaded.plan.has_value() == loaded.findings.empty(), "a plan, or findings");
  promise(loaded.model.has_value() == loaded.findings.empty(), "a model, or findings");
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (const auto& finding : loaded.findings.sorted()) {
    promise(finding.at.line <= lines && finding.at.column <= size + 1, "a finding is inside the text");
    promise(!finding.message.empty() && finding.message.find('\n') == std::string::npos, "a finding is one line");
  }
  if (!loaded.plan) return 0;
  promise(loaded.plan->nodes().size() == loaded.model->hosts.size(), "every host is in the plan");
  for (const auto& node : loaded.plan->nodes()) {
    promise(!node.parent || loaded.plan->node(*node.parent).rank < node.rank, "a parent has the lower rank");
  }
  return 0;
}
