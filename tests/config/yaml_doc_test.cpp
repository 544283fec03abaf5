// YAML with places: what is taken, what is refused, and where the finger points.
#include "config/yaml_doc.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "config/map_reader.hpp"

using namespace deltarelay::config;

namespace {

/// All findings of one text, one line each.
std::string findings_of(std::string_view text) {
  Findings findings("f.yaml");
  (void)parse_yaml(text, findings);
  return findings.text();
}

YamlNode parsed(std::string_view text) {
  Findings findings("f.yaml");
  auto node = parse_yaml(text, findings);
  CHECK(findings.text() == "");
  REQUIRE(node.has_value());
  return *node;
}

/// Refused, with this at the end of the only finding.
bool refused(std::string_view text, std::string_view message) {
  Findings findings("f.yaml");
  const auto node = parse_yaml(text, findings);
  INFO(findings.text());
  CHECK_FALSE(node.has_value());
  return findings.size() == 1 && findings.text().find(message) != std::string::npos;
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

/// Pieces in a row; g++ 12 warns wrongly about `"literal" + std::string`.
std::string joined(std::initializer_list<std::string_view> pieces) {
  std::string out;
  for (const std::string_view piece : pieces) out += piece;
  return out;
}

/// A directory of its own for one test, removed with everything in it.
class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "deltarelay-yaml-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_SUITE("config/yaml_doc") {
  TEST_CASE("maps, lists and scalars come with their places") {
    const YamlNode root = parsed("a: 1\nlist:\n  - x\n  - {k: v, \"q\": 'w'}\nnone:\n");
    REQUIRE(root.kind == YamlNode::Kind::map);
    REQUIRE(root.entries.size() == 3);
    CHECK(root.entries[0].key == "a");
    CHECK(root.entries[0].at == Position{1, 1});
    CHECK(root.entries[0].value.at == Position{1, 4});
    CHECK(root.entries[0].value.text == "1");
    CHECK_FALSE(root.entries[0].value.quoted);
    const YamlNode& list = root.entries[1].value;
    REQUIRE(list.kind == YamlNode::Kind::list);
    REQUIRE(list.items.size() == 2);
    CHECK(list.items[0].at == Position{3, 5});
    REQUIRE(list.items[1].kind == YamlNode::Kind::map);
    CHECK(list.items[1].at == Position{4, 5});
    CHECK(list.items[1].entries[1].key == "q");
    CHECK(list.items[1].entries[1].value.quoted);
    CHECK(root.entries[2].value.kind == YamlNode::Kind::null);
  }

  TEST_CASE("C63: scalars keep their text; nothing is converted") {
    const YamlNode root = parsed("[0010, 0x1F, 1e3, yes, \"7443\", 'null', null, ~, Null, 1_0]");
    std::string all;
    for (const YamlNode& item : root.items) all += item.kind == YamlNode::Kind::null ? "(null)|" : item.text + "|";
    CHECK(all == "0010|0x1F|1e3|yes|7443|null|(null)|(null)|(null)|1_0|");
  }

  TEST_CASE("every doubled key is found, with the line of the first; the first one stays") {
    Findings findings("f.yaml");
    const auto root = parse_yaml("a: 1\nb: {x: 1, x: 2}\na: 2\na: {deep: [1]}\n", findings);
    REQUIRE(root.has_value());
    CHECK(findings.text() ==
          "f.yaml:2:11: error: key \"x\" appears twice (first at line 2)\n"
          "f.yaml:3:1: error: key \"a\" appears twice (first at line 1)\n"
          "f.yaml:4:1: error: key \"a\" appears twice (first at line 1)\n");
    REQUIRE(root->entries.size() == 2);
    CHECK(root->entries[0].value.text == "1");
  }

  TEST_CASE("keys in quotes and plain ones are the same key") {
    CHECK(findings_of("a: 1\n\"a\": 2\n") == "f.yaml:2:1: error: key \"a\" appears twice (first at line 1)\n");
  }

  TEST_CASE("C64: anchors, aliases, tags and second documents are refused by name and place") {
    CHECK(findings_of("a: &x 1\n") == "f.yaml:1:4: error: anchors (&name) are not supported; write the value out\n");
    CHECK(findings_of("a: &x [*x]\n") == "f.yaml:1:4: error: anchors (&name) are not supported; write the value out\n");
    CHECK(findings_of("a: !!int 5\n") == "f.yaml:1:4: error: tags (\"tag:yaml.org,2002:int\") are not supported\n");
    CHECK(findings_of("a: !mine {b: 1}\n").find("tags (\"!mine\") are not supported") != std::string::npos);
    CHECK(findings_of("a: 1\n---\nb: 2\n") ==
          "f.yaml:2:1: error: a second document; a configuration is one document\n");
    CHECK(findings_of("---\na: 1\n") == "");
    CHECK(findings_of("a: 1\n...\n") == "");
    // An alias without its anchor is the parser's to refuse.
    CHECK(refused("a: *x\n", "f.yaml:1:4: error: not valid YAML: "));
  }

  TEST_CASE("C64: nine levels of nine aliases cost nothing") {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int level = 1; level <= 9; ++level) {
      const std::string number = std::to_string(level), name = joined({"a", number});
      const std::string below = joined({"*a", std::to_string(level - 1)});
      bomb += joined({name, ": &", name, " [", below, repeated(joined({", ", below}), 8), "]\n"});
    }
    CHECK(refused(bomb, "f.yaml:1:5: error: anchors"));
  }

  TEST_CASE("C64: nesting is bounded whatever it is made of") {
    CHECK(refused(repeated("[", 100'000), "nested more than 32 levels deep"));
    CHECK(refused(repeated("{a: ", 100'000), "nested more than 32 levels deep"));
    CHECK(refused(repeated("- ", 100'000), "nested more than 32 levels deep"));
    CHECK(refused(joined({"x: \"a # \"\ny: ", repeated("[", 33)}), "nested more than 32 levels deep"));
    // Brackets that look commented out here, and are not for the parser.
    CHECK_FALSE(
        parse_yaml(joined({"{a: \"x # \", b: ", repeated("[", 40)}), *std::make_unique<Findings>("f")).has_value());
    std::string indented;
    for (std::size_t depth = 0; depth < 1'900; ++depth) indented += std::string(depth, ' ') + "a:\n";
    CHECK(refused(indented, "f.yaml:33:33: error: nested more than 32 levels deep"));
    CHECK(parsed(repeated("[", 32) + repeated("]", 32)).kind == YamlNode::Kind::list);
    CHECK(refused(repeated("[", 33) + repeated("]", 33), "f.yaml:1:33: error: nested more than 32 levels deep"));
  }

  TEST_CASE("C64: size and number of entries are bounded before the parser sees them") {
    CHECK(refused(std::string(yaml_bytes_max + 1, '#'), "larger than 2097152 bytes; is this the right file?"));
    CHECK(parsed(std::string(yaml_bytes_max, '#')).kind == YamlNode::Kind::null);
    CHECK(refused(joined({"[", repeated("a,", 400'000), "a]"}), "more than 300000 entries; write hosts as ranges"));
    CHECK(refused(repeated("? ", 350'000), "more than 300000 entries"));
    CHECK(parsed(joined({"[", repeated("a,", 100'000), "a]"})).items.size() == 100'001);
    CHECK(parsed(joined({"a: ", std::string(1'000'000, 'x')})).entries.at(0).value.text.size() == 1'000'000);
  }

  TEST_CASE("C64: bytes that are no text are refused where they stand") {
    using namespace std::string_literals;
    CHECK(findings_of("a: 1\nb: \0x"s) == "f.yaml:2:4: error: NUL byte; is this a text file?\n");
    CHECK(findings_of("a: \x1b[2J") == "f.yaml:1:4: error: control character 0x1b\n");
    CHECK(findings_of("a: \x7f") == "f.yaml:1:4: error: control character 0x7f\n");
    CHECK(findings_of("# \x01\na: 1") == "f.yaml:1:3: error: control character 0x01\n");
    CHECK(findings_of("a:\t1") == "f.yaml:1:3: error: tab; YAML wants spaces\n");
    CHECK(findings_of("a:\n\tb: 1") == "f.yaml:2:1: error: tab; YAML wants spaces\n");
    CHECK(findings_of("a: 1 #\ttab in a comment\n") == "");
    struct Case {
      const char *name, *text;
    };
    for (const Case& one : {Case{"latin-1", "a: \xe9t\xe9"}, Case{"a lone continuation", "a: \x80"},
                            Case{"overlong slash", "a: \xc0\xaf"}, Case{"overlong three", "a: \xe0\x80\xaf"},
                            Case{"overlong four", "a: \xf0\x80\x80\xaf"}, Case{"surrogate", "a: \xed\xa0\x80"},
                            Case{"past U+10FFFF", "a: \xf4\x90\x80\x80"}, Case{"five bytes", "a: \xf8\x88\x80\x80\x80"},
                            Case{"cut off", "a: \xe2\x82"}, Case{"cut by a letter", "a: \xe2\x82z"}}) {
      CAPTURE(one.name);
      CHECK(findings_of(one.text) == "f.yaml:1:4: error: not valid UTF-8\n");
    }
    CHECK(findings_of("\xff\xfe"
                      "a\0:\0"s) == "f.yaml:1:1: error: not valid UTF-8\n");
    CHECK(parsed("a: \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf").entries.at(0).value.text ==
          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
  }

  TEST_CASE("a byte order mark changes nothing, not even the places") {
    const YamlNode root = parsed(
        "\xef\xbb\xbf"
        "a: 1\nb: 2\n");
    REQUIRE(root.entries.size() == 2);
    CHECK(root.entries[0].key == "a");
    CHECK(root.entries[0].at == Position{1, 1});
    CHECK(root.entries[1].at == Position{2, 1});
    CHECK(findings_of("\xef\xbb\xbf"
                      "a:\t1") == "f.yaml:1:3: error: tab; YAML wants spaces\n");
  }

  TEST_CASE("lines end with LF or CRLF; a carriage return alone is refused") {
    const YamlNode root = parsed("a: 1\r\nb: [x,\r\n  y]\r\nc: |\r\n  text\r\n");
    REQUIRE(root.entries.size() == 3);
    CHECK(root.entries[0].value.text == "1");
    CHECK(root.entries[1].at == Position{2, 1});
    CHECK(root.entries[1].value.items.at(1).text == "y");
    CHECK(root.entries[2].value.text == "text\n");
    CHECK(findings_of("a: 1\rb: 2\n") ==
          "f.yaml:1:5: error: carriage return without a line feed; end lines with LF or CRLF\n");
    CHECK(findings_of("a: 1\r").find("carriage return") != std::string::npos);
  }

  TEST_CASE("columns count bytes, for the parser's findings and ours alike") {
    CHECK(findings_of("{\xc3\xa9: 1, a: 1, a: 2}") ==
          "f.yaml:1:15: error: key \"a\" appears twice (first at line 1)\n");
    CHECK(findings_of("\xc3\xa9:\t1") == "f.yaml:1:4: error: tab; YAML wants spaces\n");
  }

  TEST_CASE("no text and comments alone are nothing") {
    CHECK(parsed("").kind == YamlNode::Kind::null);
    CHECK(parsed("\n\n# nothing\n").kind == YamlNode::Kind::null);
    CHECK(parsed("~").kind == YamlNode::Kind::null);
  }

  TEST_CASE("syntax errors are findings with the parser's place") {
    for (const std::string text : {"a: [1, 2", "a: {b: 1", "a: 'x", "a: \"x", "a: b: c", "a: 1\n b: 2", "a: 1\n- b",
                                   "]", "a: \"\\q\"", "a: @x", "a: `x"}) {
      CAPTURE(text);
      CHECK(refused(text, ": error: not valid YAML: "));
    }
    CHECK(findings_of("a: 1\n b: 2").rfind("f.yaml:2:", 0) == 0);
  }

  TEST_CASE("a key must be one plain word") {
    CHECK(findings_of("[a, b]: 1\n").find("a key must be a plain word") != std::string::npos);
    CHECK(findings_of("? {a: 1}\n: 1\n").find("a key must be a plain word") != std::string::npos);
    CHECK(findings_of(": 1\n").find("a key is missing before ':'") != std::string::npos);
  }

  TEST_CASE("text in messages is quoted, shortened between characters, and without control characters") {
    CHECK(shown("abc") == "\"abc\"");
    CHECK(shown("a\nb\x1b") == "\"a\\x0ab\\x1b\"");
    CHECK(shown(std::string(60, 'x')) == joined({"\"", std::string(60, 'x'), "\""}));
    CHECK(shown(std::string(61, 'x')) == joined({"\"", std::string(60, 'x'), "...\""}));
    CHECK(shown(std::string(59, 'x') + "\xe2\x82\xac") == joined({"\"", std::string(59, 'x'), "...\""}));
  }

  TEST_CASE("findings are sorted by place, each once, those of other files after") {
    Findings one("a.yaml"), other("b.yaml");
    one.add({2, 1}, "second");
    one.add({1, 9}, "first");
    one.add({2, 1}, "second");
    one.add({}, "as a whole");
    other.add({1, 1}, "elsewhere");
    one.append(other);
    CHECK(one.text() ==
          "a.yaml: error: as a whole\na.yaml:1:9: error: first\na.yaml:2:1: error: second\nb.yaml:1:1: error: "
          "elsewhere\n");
    CHECK(one.size() == 5);
  }

  TEST_CASE("a file that cannot be read says why, and one past the limit is not read on") {
    const Directory directory;
    const auto findings_for = [](const std::filesystem::path& file) {
      Findings findings("f.yaml");
      CHECK_FALSE(read_yaml_file(file, findings).has_value());
      return findings.text();
    };
    CHECK(findings_for(directory.path() / "none.yaml") ==
          "f.yaml: error: cannot be opened: No such file or directory\n");
    CHECK(findings_for(directory.path()) == "f.yaml: error: cannot be read: Is a directory\n");
    const auto file = directory.path() / "some.yaml";
    std::ofstream(file) << "a: 1\n";
    Findings findings("f.yaml");
    CHECK(read_yaml_file(file, findings).value() == "a: 1\n");
    std::filesystem::resize_file(file, 200'000'000);
    const auto text = read_yaml_file(file, findings);
    REQUIRE(text.has_value());
    CHECK(text->size() == yaml_bytes_max + 1);
    CHECK_FALSE(parse_yaml(*text, findings).has_value());
    CHECK(findings.text() == "f.yaml: error: larger than 2097152 bytes; is this the right file?\n");
  }
}

TEST_SUITE("config/map_reader") {
  TEST_CASE("wrong kinds, missing values and unknown keys are all found in one pass, and defaults stay") {
    const YamlNode node =
        parsed("text: [1]\nlist: 1\nnone:\ncount: 12x\nflag: \"true\"\nsmall: 3\nempty: \"\"\ncontorl: 1\n");
    Findings findings("f.yaml");
    MapReader reader(node, "top.", findings);
    std::string text = "kept", empty = "kept", missing = "kept";
    std::uint32_t count = 7, small = 7;
    bool flag = true;
    reader.text("text", text);
    CHECK(reader.list("list").empty());
    CHECK(reader.node("none") == nullptr);
    reader.count("count", count, 0, 100);
    reader.flag("flag", flag);
    reader.count("small", small, 4, 100);
    reader.text("empty", empty);
    reader.required_text("missing", missing);
    reader.text("control", missing);
    reader.finish();
    CHECK(findings.text() ==
          "f.yaml:1:1: error: key \"top.missing\" is missing\n"
          "f.yaml:1:7: error: top.text: must be a single value, not a list\n"
          "f.yaml:2:7: error: top.list: must be a list, not a single value\n"
          "f.yaml:3:1: error: top.none: has no value\n"
          "f.yaml:4:8: error: top.count: \"12x\" is not a whole decimal number\n"
          "f.yaml:5:7: error: top.flag: \"true\" is quoted text; write true or false\n"
          "f.yaml:6:8: error: top.small: \"3\" is not in 4 to 100\n"
          "f.yaml:7:8: error: top.empty: is empty\n"
          "f.yaml:8:1: error: unknown key \"contorl\" (did you mean \"control\"?)\n");
    CHECK(text == "kept");
    CHECK(empty == "kept");
    CHECK(missing == "kept");
    CHECK(count == 7);
    CHECK(small == 7);
  }

  TEST_CASE("a node that is no map is one finding, whatever is asked of it") {
    const YamlNode node = parsed("[1]");
    Findings findings("f.yaml");
    MapReader reader(node, "limits.", findings);
    std::string text;
    reader.required_text("a", text);
    (void)reader.required("b");
    reader.finish();
    CHECK_FALSE(reader.is_map());
    CHECK(findings.text() == "f.yaml:1:1: error: limits: must be a map of keys, not a list\n");
  }

  TEST_CASE("values with control characters are refused: they would reach terminals, logs and C functions") {
    const YamlNode node = parsed("a: \"x\\0y\"\nb: \"\\e[2J\"\nc: \"line\\nline\"\nd: \"\\x7f\"\ne: \"\\u00e9\"\n");
    Findings findings("f.yaml");
    MapReader reader(node, "", findings);
    std::string text = "kept", good;
    for (const char* key : {"a", "b", "c", "d"}) reader.text(key, text);
    reader.text("e", good);
    CHECK(text == "kept");
    CHECK(good == "\xc3\xa9");
    CHECK(findings.size() == 4);
    CHECK(findings.text().rfind("f.yaml:1:4: error: a: contains a control character\n", 0) == 0);
  }

  TEST_CASE("durations finer than a millisecond are refused where milliseconds are kept") {
    const YamlNode node = parsed("a: 1500us\nb: 1500ms\n");
    Findings findings("f.yaml");
    MapReader reader(node, "", findings);
    std::chrono::milliseconds a{7}, b{7};
    reader.duration("a", a, std::chrono::milliseconds(0), std::chrono::milliseconds(10'000));
    reader.duration("b", b, std::chrono::milliseconds(0), std::chrono::milliseconds(10'000));
    CHECK(a == std::chrono::milliseconds(7));
    CHECK(b == std::chrono::milliseconds(1500));
    CHECK(findings.text() == "f.yaml:1:4: error: a: is not a whole number of milliseconds\n");
  }

  TEST_CASE("paths count from the base and are made plain") {
    const YamlNode node = parsed("a: x/../y\nb: /abs/./z\n");
    Findings findings("f.yaml");
    MapReader reader(node, "", findings);
    std::filesystem::path a, b, c = "kept";
    reader.path("a", "/base", a);
    reader.path("b", "/base", b);
    reader.path("c", "/base", c);
    CHECK(a == "/base/y");
    CHECK(b == "/abs/z");
    CHECK(c == "kept");
    CHECK(findings.empty());
  }
}
