// Text that operators and scripts see, compared with a file in tests/golden/admin.
//
// A failing test leaves what it saw as NAME.actual; it becomes the golden file after somebody has read it.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace deltarelay::relay::admin::testing {

inline void check_golden(const std::string& name, const std::string& text) {
  const std::string file = std::string(DELTARELAY_SOURCE_DIR "/tests/golden/admin/") + name;
  std::ifstream in(file);
  std::ostringstream expected;
  expected << in.rdbuf();
  if (expected.str() != text) std::ofstream(name + ".actual") << text;
  INFO("golden file ", file, "; what this run says is in ", name, ".actual of the working directory");
  CHECK(expected.str() == text);
}

}  // namespace deltarelay::relay::admin::testing
