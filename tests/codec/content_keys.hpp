// A fresh content key pair in a temporary directory of its own, gone with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "codec/signature.hpp"

namespace deltarelay::tests {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "deltarelay-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

struct ContentKeys {
  TempDir dir;
  codec::ContentSigner signer = make(dir.path());
  codec::ContentVerifier verifier = codec::ContentVerifier::load(dir.path() / "content.pub").value();

 private:
  static codec::ContentSigner make(const std::filesystem::path& at) {
    codec::ContentSigner::generate(at / "content.key", at / "content.pub").value();
    return codec::ContentSigner::load(at / "content.key").value();
  }
};

}  // namespace deltarelay::tests
