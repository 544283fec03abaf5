// relayd.yaml of any bytes: findings, or a configuration that is written as a file which loads to the same.
#include <string_view>

#include "config/relayd_config.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using deltarelay::fuzz::promise;
using namespace deltarelay::config;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const LoadedConfig loaded = parse_relayd_config("/etc/f", {reinterpret_cast<const char*>(data), size});
  promise(loaded.config.has_value() == loaded.findings.empty(), "a configuration, or findings");
  for (const Finding& finding : loaded.findings.sorted()) {
    promise(!finding.message.empty() && finding.message.find('\n') == std::string::npos, "a finding is one line");
  }
  if (!loaded.config) return 0;
  const std::string yaml = to_yaml(*loaded.config);
  const LoadedConfig again = parse_relayd_config("/etc/f", yaml);
  promise(again.config.has_value(), "what is written is taken");
  promise(to_yaml(*again.config) == yaml, "what is written is taken as it was");
  return 0;
}
