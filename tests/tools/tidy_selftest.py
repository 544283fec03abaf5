"""Every check of tools/tidy.py, shown a fault that it must find and the right way that it must not.

Each case is a small tree: path -> text. MARKED lines are those that must be found, by the check that the case names, and no
other line may be. A last test makes sure that each check of tidy.CHECKS has cases of both kinds.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
import tidy  # noqa: E402

MARKED = "//!"  # at the end of a line: this line is a fault
HEAD = "// What it is.\n#pragma once\n"


def found_in(files):
    with tempfile.TemporaryDirectory() as directory:
        for path, text in files.items():
            file = pathlib.Path(directory, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return [(path, line, check) for path, line, check, _ in tidy.faults(directory)]


def marked_in(files, check):
    return sorted((path, number, check) for path, text in files.items()
                  for number, line in enumerate(text.split("\n"), 1) if line.endswith(MARKED))


class Case(unittest.TestCase):
    maxDiff = None
    seen = {}  # check -> {"fault", "right"}

    def check(self, check, files):
        """The marked lines are found by `check`, nothing else is."""
        expected = marked_in(files, check)
        Case.seen.setdefault(check, set()).add("fault" if expected else "right")
        self.assertEqual(sorted(set(found_in(files))), expected)

    def in_source(self, check, path, code, **more):
        self.check(check, {path: "// What it is.\n" + code + "\n", **{k.replace("__", "/"): v for k, v in more.items()}})


class Includes(Case):
    def includes(self, path, *headers):
        present = {h.strip('"'): HEAD for line in headers for h in [line.split(" ")[0]] if h.startswith('"')}
        text = "// What it is.\n" + "".join(f"#include {line}\n" for line in headers)
        self.check("include", {**present, path: text})

    def test_codec_knows_nobody_and_no_sockets(self):
        self.includes("codec/a.cpp", "<vector>", "<unistd.h>", "<lz4.h>", "<xxhash.h>", "<openssl/evp.h>", "<boost/json/value.hpp>",
                      "<boost/system/result.hpp>", '"codec/b.hpp"', '"codec/encoding/c.hpp"')
        for wrong in ('"topology/model.hpp"', '"config/units.hpp"', '"relay/core/events.hpp"', "<boost/asio.hpp>", "<fmt/format.h>",
                      "<spdlog/spdlog.h>", "<yaml-cpp/yaml.h>", "<sys/socket.h>", "<netinet/in.h>", "<CLI/CLI.hpp>"):
            with self.subTest(wrong):
                self.includes("codec/kernels/a.cpp", wrong + " " + MARKED)

    def test_topology_is_standard_only(self):
        self.includes("topology/a.cpp", "<vector>", '"topology/b.hpp"', "<boost/system/result.hpp>")
        for wrong in ('"codec/types.hpp"', '"config/units.hpp"', "<fmt/format.h>", "<boost/json.hpp>", "<unistd.h>", "<lz4.h>"):
            with self.subTest(wrong):
                self.includes("topology/a.cpp", wrong + " " + MARKED)

    def test_config_knows_topology_and_yaml_in_one_file(self):
        self.includes("config/yaml_doc.cpp", "<yaml-cpp/parser.h>", '"topology/model.hpp"')
        for wrong in ("<yaml-cpp/parser.h>", '"codec/types.hpp"', '"relay/store/log.hpp"', "<boost/asio.hpp>"):
            with self.subTest(wrong):
                self.includes("config/units.cpp", wrong + " " + MARKED)

    def test_core_knows_codec_and_topology(self):
        self.includes("relay/core/a.cpp", '"codec/types.hpp"', '"topology/plan.hpp"', '"relay/core/b.hpp"', "<fmt/format.h>")
        for wrong in ('"config/units.hpp"', '"relay/net/link.hpp"', '"relay/store/log.hpp"', '"relay/shell.hpp"', "<boost/asio.hpp>",
                      "<unistd.h>", "<sys/socket.h>", "<openssl/evp.h>"):
            with self.subTest(wrong):
                self.includes("relay/core/a.cpp", wrong + " " + MARKED)

    def test_the_layers_of_the_shell_meet_the_core_at_events_and_actions(self):
        for folder in ("net", "store", "admin", "source"):
            with self.subTest(folder):
                self.includes(f"relay/{folder}/a.cpp", '"codec/types.hpp"', '"topology/plan.hpp"', '"relay/core/events.hpp"',
                              '"relay/core/actions.hpp"', f'"relay/{folder}/b.hpp"', "<boost/asio/post.hpp>", "<openssl/ssl.h>")
                self.includes(f"relay/{folder}/a.cpp", '"relay/core/refit_node.hpp" ' + MARKED, '"config/units.hpp" ' + MARKED,
                              '"relay/shell.hpp" ' + MARKED, "<yaml-cpp/yaml.h> " + MARKED, "<CLI/CLI.hpp> " + MARKED)
        self.includes("relay/net/a.cpp", '"relay/store/log.hpp" ' + MARKED)
        self.includes("relay/store/a.cpp", '"relay/net/link.hpp" ' + MARKED)

    def test_shell_tools_and_tests(self):
        self.includes("relay/shell.cpp", '"relay/core/node.hpp"', '"relay/net/link.hpp"', '"config/units.hpp"', "<spdlog/spdlog.h>")
        self.includes("relay/shell.cpp", '"tools/relayctl/context.hpp" ' + MARKED, "<yaml-cpp/yaml.h> " + MARKED)
        self.includes("tools/relayctl/a.cpp", '"config/units.hpp"', '"relay/store/verify.hpp"', "<CLI/CLI.hpp>")
        self.includes("tools/relayctl/a.cpp", '"relay/core/node.hpp" ' + MARKED, '"relay/shell.hpp" ' + MARKED)
        self.includes("tests/a_test.cpp", '"relay/core/node.hpp"', "<doctest/doctest.h>", '"tests/support/x.hpp"')

    def test_project_headers_are_named_by_their_whole_path(self):
        self.check("include", {"tests/x/a_test.cpp": '// What.\n#include "fixture.hpp" //!\n', "tests/x/fixture.hpp": HEAD})


class Calls(Case):
    def test_detached_is_nowhere_and_sleeping_in_tools_only(self):
        self.in_source("call", "tools/bench/a.cpp", "void f() {\n  co_spawn(ex, g, asio::detached);  //!\n"
                                                    "  std::this_thread::sleep_for(1s);\n}")
        for path in ("relay/net/a.cpp", "tests/a_test.cpp"):
            self.in_source("call", path, "void f() {\n  co_spawn(ex, g, asio::detached);  //!\n  std::this_thread::sleep_for(1s);  //!\n"
                                         "  usleep(5);  //!\n}")
        self.in_source("call", "relay/net/a.cpp", '// detached and sleep_for(1s) in a comment\nauto s = "detached sleep_for(1)";')

    def test_the_environment_is_read_in_main(self):
        code = 'auto x = std::getenv("HOME");'
        self.in_source("call", "relay/net/a.cpp", code + "  //!")
        self.in_source("call", "tools/relayctl/context.cpp", code + "  //!")
        for path in ("tools/relayctl/main.cpp", "relay/relayd.cpp", "tests/a_test.cpp"):
            self.in_source("call", path, code)

    def test_libraries_do_not_print_or_end_the_process(self):
        code = ("void f() {\n  std::cout << 1;{0}\n  std::cerr << 1;{0}\n  std::printf(s);{0}\n  puts(s);{0}\n  std::exit(1);{0}\n"
                "  abort();{0}\n  return std::abort();{0}\n}}").replace("{\n", "{{\n", 1)
        for path in ("codec/a.cpp", "topology/a.cpp", "config/a.cpp", "relay/core/a.cpp", "relay/store/a.cpp", "relay/admin/a.cpp"):
            self.in_source("call", path, code.format("  //!"))
        for path in ("relay/relayd.cpp", "tools/relayctl/a.cpp", "tests/a_test.cpp"):
            self.in_source("call", path, code.format(""))
        self.in_source("call", "relay/core/a.cpp",
                       "void abort(int v);\nvoid Root::abort(int v) { snprintf(b, 1, s); }\nvoid g() { root.abort(1); p->exit(2); }")

    def test_pure_layers_do_not_read_the_clock(self):
        code = "auto t = std::chrono::steady_clock::now();{0}\nauto u = std::time(nullptr);{0}"
        for path in ("codec/a.cpp", "topology/a.cpp", "config/a.cpp", "relay/core/a.cpp"):
            self.in_source("call", path, code.format("  //!"))
        self.in_source("call", "relay/net/a.cpp", code.format(""))


class Coroutines(Case):
    def body(self, code):
        self.in_source("coroutine", "relay/net/a.cpp", "awaitable<void> f() {\n" + code + "\n}")

    def test_a_braced_temporary_in_a_statement_with_co_await(self):
        for fault in ("  co_await send(Frame{1, 2});  //!", "  co_await send({});  //!", "  const auto n = co_await send(Frame{});  //!",
                      "  co_return co_await g(std::vector<int>{1, 2});  //!", "  if (co_await send(net::Frame{1})) {  //!\n    g();\n  }",
                      "  x = Pair{co_await a(), 1};  //!", "  co_await (send(Frame{1}) || wait());  //!",
                      "  while (auto r = co_await read(Limits{5})) {  //!\n  }", "  return_value(co_await a(), Frame{.size = 1});  //!",
                      "  {\n    g();\n    co_await send(Frame{1});  //!\n  }"):
            with self.subTest(fault):
                self.body(fault)

    def test_a_capturing_lambda_in_a_statement_with_co_await(self):
        for fault in ("  co_spawn(co_await this_coro::executor, [x] { g(x); }, token);  //!", "  co_await run([&] { return 1; });  //!",
                      "  co_await run([this]() -> awaitable<void> { co_return; });  //!",
                      "  co_await run([a = b](int i) mutable { return i; });  //!"):
            with self.subTest(fault):
                self.body(fault)

    def test_what_has_a_name_is_right(self):
        for right in ("  Frame frame{1, 2};\n  co_await send(std::move(frame));", "  auto op = send(Frame{1});\n  co_await std::move(op);",
                      "  const Frame frame{co_await size()};", "  co_await run([] { return 1; });", "  co_await wait(std::chrono::seconds{5});",
                      "  if (co_await ready()) {\n    Frame f{1};\n    g([x] { return x; });\n  }", "  x[i] = co_await y[j](1);",
                      "  for (Frame f{1}; more(f);) {\n    co_await g();\n  }", "  // co_await send(Frame{});\n  g(\"co_await f({})\");",
                      "  auto task = [x]() -> awaitable<void> {\n    Frame f{x};\n    co_await g(f);\n  };",
                      "  try {\n    co_await g();\n  } catch (...) {\n    h(Frame{1});\n  }", "  co_await g(1'000'000, '{', \"{\");"):
            with self.subTest(right):
                self.body(right)

    def test_classes_and_namespaces_open_blocks(self):
        self.in_source("coroutine", "relay/net/a.cpp",
                       "namespace a::b {\nclass C final : public D<int> {\n  Limits limits{1, 2};\n  awaitable<R<int>> f() const {\n"
                       "    co_await g();\n  }\n};\nenum class E : int { x };\n}  // namespace a::b\n"
                       "C::C(int n) : n_{n}, limits_{n, 2} {\n  start();\n}\nauto h() -> awaitable<void> {\n  co_await g();\n}")


class Nodiscard(Case):
    ALIASES = HEAD + "template <class T>\nusing Result = boost::system::result<T>;\ntemplate <class T>\nusing Read = boost::system::result<T, Bad>;\n"

    def header(self, code, check="nodiscard"):
        self.check(check, {"codec/errc.hpp": self.ALIASES, "codec/a.hpp": HEAD + code + "\n"})

    def test_results_are_not_thrown_away(self):
        for fault in ("Result<int> f();  //!", "codec::Result<std::vector<int>> f(int a);  //!", "Read<void> f() noexcept;  //!",
                      "boost::system::error_code f();  //!", "struct S {\n  virtual Result<int> f() = 0;  //!\n};",
                      "struct S {\n public:\n  static std::error_code f() { return {}; }  //!\n};",
                      "template <class T>\nResult<T> f(T t);  //!", "inline Result<void> operator()(int);  //!"):
            with self.subTest(fault):
                self.header(fault)

    def test_marked_functions_and_other_uses_are_right(self):
        for right in ("[[nodiscard]] Result<int> f();", "struct S {\n  [[nodiscard]] virtual Result<int> f() = 0;\n};",
                      "template <class T>\n[[nodiscard]] Result<T> f(T t);", "void f(Result<int> r);", "struct S {\n  Result<int> last_;\n};",
                      "using F = std::function<Result<int>(int)>;", "inline int f() { return Result<int>(5).value(); }", "// Result<int> f();",
                      "awaitable<Result<int>> f();"):
            with self.subTest(right):
                self.header(right)


class Text(Case):
    def test_pragma_once(self):
        self.check("pragma-once", {"codec/a.hpp": "// What. //!\nint f();\n"})
        self.check("pragma-once", {"codec/a.hpp": "// What. //!\n// #pragma once\n"})
        self.check("pragma-once", {"codec/a.hpp": HEAD})

    def test_head_comment(self):
        self.check("head", {"codec/a.hpp": "#pragma once  //!\n// Too late.\n"})
        self.check("head", {"tests/a_test.cpp": "#include <vector>  //!\n"})
        self.check("head", {"tools/a.py": "import sys  //!\n"})
        self.assertEqual(found_in({"tools/a.sh": "#!/bin/sh\nset -e\n"}), [("tools/a.sh", 1, "head")])
        self.check("head", {"tools/a.sh": "#!/bin/sh\n# What.\n", "tools/a.py": '#!/usr/bin/env python3\n"""What."""\n'})
        # A source file whose own header says it, also when it is one of several: layout_text.cpp of layout.hpp.
        self.check("head", {"codec/a.hpp": HEAD, "codec/a.cpp": '#include "codec/a.hpp"\n', "codec/a_text.cpp": '#include "codec/a.hpp"\n'})
        self.check("head", {"codec/b.hpp": HEAD, "codec/a.cpp": '#include "codec/b.hpp"  //!\n'})

    def test_length(self):
        lines = tidy.FILE_LINES_MAX
        for path in ("codec/a.cpp", "tests/a_test.cpp"):
            self.check("length", {path: "// What.\n" * lines})
            self.check("length", {path: "// What.\n" * lines + "int x;  //!\n"})

    def test_leftover_marks(self):
        for mark in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.check("mark", {"codec/a.cpp": f"// What.\n// {mark}(me): later  //!\n"})
            self.assertEqual(found_in({"README.md": f"# x\n\n{mark}\n"}), [("README.md", 3, "mark")])
        self.check("mark", {"codec/a.cpp": "// What.\nauto t = mkdtemp(\"a-" + "X" * 6 + "\");\n"})

    def test_test_data_and_builds_are_left_alone(self):
        mark = "TO" + "DO"
        self.assertEqual(found_in({"tests/data/a.json": mark, "build/release/a.cpp": mark, "tests/golden/a.txt": mark}), [])


class Program(unittest.TestCase):
    def run_tidy(self, *arguments):
        return subprocess.run([sys.executable, str(TOOLS / "tidy.py"), *arguments], capture_output=True, text=True, timeout=60)

    def test_exit_codes_and_lines(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "codec", "a.cpp")
            file.parent.mkdir()
            file.write_text("// What.\n#include <fmt/format.h>\n", encoding="utf-8")
            wrong = self.run_tidy(directory)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn("codec/a.cpp:2: error: [include] codec/ may not include <fmt/format.h>\n", wrong.stdout)
            file.write_text("// What.\n", encoding="utf-8")
            self.assertEqual(self.run_tidy(directory).returncode, 0)
        self.assertEqual(self.run_tidy("--bogus").returncode, 2)

    def test_every_check_was_shown_a_fault_and_the_right_way(self):
        names = {name for name, _, _ in tidy.CHECKS}
        self.assertEqual({name: Case.seen.get(name) for name in names}, {name: {"fault", "right"} for name in names})


if __name__ == "__main__":
    # The last test looks back on all others: in the order of this file.
    loader = unittest.TestLoader()
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(c) for c in (Includes, Calls, Coroutines, Nodiscard, Text, Program))
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
