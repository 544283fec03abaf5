// A command line asked of a FakeDaemon, and what tests look for in its answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/tools/relayctl/fake_daemon.hpp"
#include "tests/tools/relayctl/run_relayctl.hpp"
#include "tests/tools/relayctl/sample_documents.hpp"

namespace deltarelay::relayctl::test {

/// An ErrorDocument.
inline std::string refusal(const char* what, int exit_code) {
  ErrorDocument error;
  error.what = what;
  error.why = "v1843 is in flight";
  error.try_next = "relayctl abort 1843";
  error.exit_code = exit_code;
  return to_json(error);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Ran ask(const FakeDaemon& daemon, std::vector<std::string> arguments, Pace& pace,
               const Surroundings& surroundings = {}) {
  arguments.insert(arguments.begin(), {"--socket", daemon.socket(), "--utc"});
  return run_relayctl(arguments, pace, surroundings);
}

inline Ran ask(const FakeDaemon& daemon, std::vector<std::string> arguments) {
  TestPace pace;
  return ask(daemon, std::move(arguments), pace);
}

}  // namespace deltarelay::relayctl::test
