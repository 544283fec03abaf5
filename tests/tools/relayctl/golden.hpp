// Text that operators see, held against the file that a person has read and approved.
//
// On a difference the text is also written to `golden-actual` in the build tree, ready to be read and copied.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace deltarelay::relayctl::test {

inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(DELTARELAY_GOLDEN_DIR) / (name + ".txt");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream approved;
  if (in) approved << in.rdbuf();
  INFO(file.string());
  if (approved.str() != text) {
    const std::filesystem::path actual = DELTARELAY_GOLDEN_ACTUAL_DIR;
    std::filesystem::create_directories(actual);
    std::ofstream(actual / (name + ".txt"), std::ios::binary) << text;
  }
  CHECK(static_cast<bool>(in));
  CHECK(approved.str() == text);
}

}  // namespace deltarelay::relayctl::test
