// Every file of tests/data/odd-safetensors, as a file and as a directory of one shard, against its manifest: what every
// reader must take, what every reader must refuse, and the ones that readers disagree about, which are refused here.
#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "codec/checkpoint.hpp"
#include "codec/signature.hpp"

namespace deltarelay::codec {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path data = fs::path(DELTARELAY_TEST_DATA) / "odd-safetensors";

json::value manifest() {
  std::ifstream in(data / "manifest.json");
  std::stringstream text;
  text << in.rdbuf();
  return json::parse(text.str());
}

std::string hex(const Sha256& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::byte b : digest) {
    out += digits[std::to_integer<unsigned>(b) >> 4];
    out += digits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

/// A directory of its own, gone again at the end.
class ScratchDir {
 public:
  ScratchDir() {
    std::string pattern = (fs::temp_directory_path() / "deltarelay-odd-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~ScratchDir() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void check_tensors(const fs::path& path, const json::array& expected) {
  auto checkpoint = Checkpoint::open(path);
  if (checkpoint.has_error()) FAIL(checkpoint.error().text());
  CHECK(checkpoint->layout()->tensors().size() == expected.size());
  auto map = CheckpointMap::open(*checkpoint);
  REQUIRE(map.has_value());
  for (const json::value& tensor : expected) {
    const std::string name(tensor.at("name").as_string());
    CAPTURE(name);
    const std::size_t index = checkpoint->layout()->find(name);
    REQUIRE(index < checkpoint->layout()->tensors().size());
    const TensorSpec& spec = checkpoint->layout()->tensors()[index];
    CHECK(dtype_name(spec.dtype) == std::string_view(tensor.at("dtype").as_string()));
    CHECK(spec.shape == json::value_to<std::vector<std::uint64_t>>(tensor.at("shape")));
    CHECK(hex(sha256_of(map->tensor(TensorIndex{static_cast<std::uint32_t>(index)}))) ==
          std::string_view(tensor.at("sha256").as_string()));
  }
}

void check_refused(const fs::path& path, const std::string& file) {
  auto checkpoint = Checkpoint::open(path);
  REQUIRE(checkpoint.has_error());
  const std::string text = checkpoint.error().text();
  CHECK_MESSAGE(text.find(file) != std::string::npos, text);                                // names the file
  CHECK_MESSAGE(text.find(checkpoint.error().code.message()) != std::string::npos, text);  // and the reason
  CHECK(checkpoint.error().code.category() == codec_category());
}

}  // namespace

TEST_SUITE("codec/odd_safetensors") {
  TEST_CASE("each odd file is taken with exactly its tensors, or refused by name and reason") {
    std::size_t taken = 0, refused = 0;
    const json::value cases = manifest();
    for (const json::value& c : cases.at("cases").as_array()) {
      const std::string file(c.at("file").as_string());
      CAPTURE(file);
      ScratchDir directory;
      fs::copy_file(data / file, directory.path() / file);
      if (c.at("product").as_string() == "accept") {
        check_tensors(data / file, c.at("tensors").as_array());
        check_tensors(directory.path(), c.at("tensors").as_array());
        ++taken;
      } else {
        check_refused(data / file, file);
        check_refused(directory.path(), file);
        ++refused;
      }
    }
    CHECK(taken == 11);
    CHECK(refused == 27);
  }
}

}  // namespace deltarelay::codec
