#!/usr/bin/env python3
"""Checks what compilers and clang-format do not: the rules of this repository that are mechanical.

tidy.py [ROOT]   prints `file:line: error: [check] what` for each violation; exit 0: none, 1: some, 2: usage.
tests/tools/tidy_selftest.py proves for every check that it can fail. What the checks read is the text with comments and the
contents of strings blanked out; they know no types, so a few of them are stricter than the rule (see each).
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
from tidy_coroutines import coroutine_faults  # noqa: E402
from tidy_source import Source, load_tree  # noqa: E402

FILE_LINES_MAX = 400

# --- who may include whom -------------------------------------------------------------------------------------------------

# The longest prefix of a file's path decides. `ours`: folders, or single headers, beside its own folder.
# `others`: what a third-party header's path begins with.
CORE_SEAM = ("relay/core/events.hpp", "relay/core/actions.hpp", "relay/core/node_record.hpp", "relay/core/messages.hpp")
FREE = ("boost/system/", "boost/throw_exception.hpp", "boost/assert")
FMT = ("fmt/",)  # stands in for std::format, which neither compiler has
NETWORK = ("boost/asio", "boost/beast", "openssl/", "curl/", "prometheus/", "spdlog/") + FMT
ALL_OURS = ("codec/", "topology/", "config/", "relay/")

INCLUDE_RULES = {
    "codec/": ((), ("lz4", "xxhash", "openssl/", "boost/json")),
    "topology/": ((), ()),
    "config/": (("topology/",), ()),
    "config/yaml_doc.cpp": (("topology/",), ("yaml-cpp/",)),
    "relay/core/": (("codec/", "topology/"), FMT),
    "relay/net/": (("codec/", "topology/") + CORE_SEAM, NETWORK),
    "relay/store/": (("codec/", "topology/") + CORE_SEAM, NETWORK + ("boost/json",)),
    # The admin server's coroutines keep to the same deadlines and task groups as the links'; it shows what the node knows.
    "relay/admin/": (("codec/", "topology/", "relay/net/", "relay/store/file_ops.hpp", "relay/core/node.hpp") + CORE_SEAM,
                     NETWORK + ("boost/json",)),
    "relay/source/": (("codec/", "topology/", "relay/store/") + CORE_SEAM, NETWORK + ("boost/json",)),
    "relay/": (ALL_OURS, NETWORK + ("CLI/", "boost/json")),
    # Offline tools use the store, the certificates and the documents of the admin API; the protocol and the shell are not theirs.
    "tools/": (("codec/", "topology/", "config/", "relay/store/", "relay/net/", "relay/admin/", "tools/"),
               NETWORK + ("CLI/", "boost/json", "benchmark/")),
}
SOCKET_HEADERS = ("sys/socket.h", "sys/un.h", "netinet/", "arpa/", "netdb.h", "sys/epoll.h", "poll.h")
WITHOUT_SOCKETS = ("codec/", "topology/", "config/", "relay/core/")
STANDARD_ONLY = ("topology/", "relay/core/")
THIRD_PARTY_TOP = ("lz4", "xxhash")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)


def own_folder(path):
    parts = path.split("/")
    deep = parts[0] == "relay" and len(parts) > 2
    return "/".join(parts[:2 if deep else 1]) + "/"


def is_third_party(name):
    """Standard headers have no folder and no suffix, system ones end in .h; everybody else has a folder or is listed."""
    if name.startswith(THIRD_PARTY_TOP):
        return True
    return "/" in name and not re.match(r"(sys|netinet|arpa|net|linux|asm|bits)/", name)


def include_faults(source, tree):
    rule = max((prefix for prefix in INCLUDE_RULES if source.path.startswith(prefix)), key=len, default=None)
    for match in INCLUDE.finditer(source.text):
        quote, name = match.groups()
        line = source.line_of(match.start(2))
        if quote == '"' and name not in tree:
            yield line, f'"{name}" is no file below the root; name project headers by their whole path'
            continue
        if rule is None:
            continue  # tests may include everything
        ours, others = INCLUDE_RULES[rule]
        if quote == '"':
            if not name.startswith((own_folder(source.path),) + tuple(ours)):
                yield line, f'{own_folder(source.path)} may not include "{name}"'
        elif is_third_party(name):
            if not name.startswith(FREE + tuple(others)):
                yield line, f"{rule} may not include <{name}>"
        elif name.startswith(SOCKET_HEADERS) and source.path.startswith(WITHOUT_SOCKETS):
            yield line, f"{rule} knows no sockets: <{name}>"
        elif name.endswith(".h") and source.path.startswith(STANDARD_ONLY):
            yield line, f"{rule} uses the standard library only: <{name}>"


# --- calls ----------------------------------------------------------------------------------------------------------------

PURE = ("codec/", "topology/", "config/", "relay/core/")
LIBRARIES = PURE + ("relay/net/", "relay/store/", "relay/admin/", "relay/source/")
EVERYWHERE = ("",)
# (pattern, where, where not, what to do instead)
BANNED = (
    (r"\bdetached\b", EVERYWHERE, (), "a task without an owner; use TaskGroup::spawn"),
    (r"\b(?:sleep_for|sleep_until|usleep|nanosleep)\s*\(", ("codec/", "topology/", "config/", "relay/", "tests/"), (),
     "sleeping; wait for a state, with a deadline"),  # a tool of one thread may poll a lock file
    (r"\b(?:secure_)?getenv\s*\(", EVERYWHERE, ("tests/", "relay/relayd.cpp", "main.cpp"),
     "the environment is read in main() only; pass the value down"),
    (r"\bstd::(?:cout|cerr|clog)\b|(?<![\w.])(?:std::)?(?:printf|puts|putchar)\s*\(", LIBRARIES, (), "libraries do not print"),
    (r"(?<![\w.>])(?:std::)?(?:exit|_exit|quick_exit|abort)\s*\(", LIBRARIES, (), "libraries do not end the process"),
    (r"\w+_clock::now\s*\(|\b(?:gettimeofday|clock_gettime)\s*\(|\bstd::time\s*\(", PURE, (),
     "this layer does not read the clock; time is an argument"),
)


def call_faults(source, _tree):
    for pattern, where, where_not, why in BANNED:
        if not source.path.startswith(where) or any(source.path.startswith(w) or source.path.endswith("/" + w) for w in where_not):
            continue
        for match in re.finditer(pattern, source.code):
            name = match.group(0).rstrip("( ")
            if name in ("exit", "abort") and is_declaration_or_member(source.code, match.start()):
                continue
            yield source.line_of(match.start()), f"{name}: {why}"


def is_declaration_or_member(code, at):
    """`void abort(` and `x::abort(` are functions of ours that happen to have that name."""
    before = code[:at].rstrip()
    return before.endswith("::") or bool(re.search(r"[\w>&*]$", before)) and not re.search(r"\b(?:return|else|do)$", before)


# --- text -----------------------------------------------------------------------------------------------------------------

MARKS = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")


def length_faults(source, _tree):
    lines = source.text.count("\n") + (not source.text.endswith("\n"))
    if source.suffix in (".cpp", ".hpp", ".py", ".sh") and lines > FILE_LINES_MAX:
        yield FILE_LINES_MAX + 1, f"{lines} lines, more than {FILE_LINES_MAX}; split it by idea"


def mark_faults(source, _tree):
    for match in MARKS.finditer(source.text):
        yield source.line_of(match.start()), f"leftover mark {match.group(0)}; do it, or drop it"


def head_faults(source, tree):
    """Headers, scripts and lone source files say what they are. A .cpp whose header says it needs no second head."""
    lines = source.text.split("\n")
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    first = lines[0] if lines else ""
    if source.suffix in (".hpp", ".cpp"):
        if first.startswith("//") or (source.suffix == ".cpp" and has_described_header(source, tree)):
            return
        yield 1, "no head comment; the first line says what this file is and why"
    elif source.suffix in (".py", ".sh") and not first.startswith(("#", '"""')):
        yield 1, "no head comment; the first line says what this file is and why"


def has_described_header(source, tree):
    """It includes its own header: the same path, or the beginning of it up to a '_' (layout_text.cpp of layout.hpp)."""
    own = source.path[:-len(".cpp")] + "_"
    headers = (match.group(2) for match in INCLUDE.finditer(source.text))
    return any(name in tree and name.endswith(".hpp") and own.startswith(name[:-len(".hpp")] + "_") for name in headers)


def once_faults(source, _tree):
    if source.suffix == ".hpp" and not re.search(r"^#pragma once\s*$", source.code, re.M):
        yield 1, "no #pragma once"


# --- [[nodiscard]] --------------------------------------------------------------------------------------------------------

RESULT_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*boost::system::result\s*<")
SPECIFIERS = re.compile(
    r"(?:\[\[[^\]]*\]\]|\b(?:static|inline|constexpr|virtual|friend|explicit|extern|public|private|protected|final)\b|template\s*<[^{};]*>|"
    r"requires\b[^{};]*|:|\s)*")


def result_names(tree):
    names = {"error_code"}
    for source in tree.values():
        if source.suffix == ".hpp":
            names.update(RESULT_ALIAS.findall(source.code))
    return names


def after_template_arguments(code, at):
    if at >= len(code) or code[at] != "<":
        return at
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == "<") - (code[i] == ">" and code[i - 1] != "-")
        if depth == 0:
            return i + 1
    return len(code)


def nodiscard_faults(source, tree):
    if source.suffix != ".hpp":
        return
    names = "|".join(sorted(result_names(tree)))
    for match in re.finditer(rf"(?<![\w:<])(?:\w+::)*(?:{names})\b", source.code):
        end = after_template_arguments(source.code, match.end())
        function = re.match(r"\s+((?:\w+::)*(?:operator\s*\S+|\w+))\s*\(", source.code[end:])
        begin = max(source.code.rfind(c, 0, match.start()) for c in ";{}#")
        if begin >= 0 and source.code[begin] == "#":
            begin = source.code.find("\n", begin)
        before = source.code[begin + 1:match.start()]
        if not function or not SPECIFIERS.fullmatch(before) or "nodiscard" in before:
            continue
        yield source.line_of(match.start()), f"{function.group(1)}() returns {match.group(0)} and is not [[nodiscard]]"


# --- all of them ----------------------------------------------------------------------------------------------------------

CXX = (".hpp", ".cpp")
CHECKS = (
    ("include", CXX, include_faults),
    ("call", CXX, call_faults),
    ("coroutine", CXX, coroutine_faults),
    ("nodiscard", CXX, nodiscard_faults),
    ("pragma-once", CXX, once_faults),
    ("head", (".hpp", ".cpp", ".py", ".sh"), head_faults),
    ("length", (".hpp", ".cpp", ".py", ".sh"), length_faults),
    ("mark", (), mark_faults),  # every text file
)


def faults(root):
    """All violations below `root` as (path, line, check, message), in order."""
    tree = load_tree(root)
    found = []
    for source in tree.values():
        for name, suffixes, check in CHECKS:
            if not suffixes or source.suffix in suffixes:
                found += [(source.path, line, name, message) for line, message in check(source, tree)]
    return sorted(found)


def main(arguments):
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print("usage: tidy.py [ROOT]", file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    found = faults(root)
    for path, line, name, message in found:
        print(f"{path}:{line}: error: [{name}] {message}")
    print(f"tidy: {len(load_tree(root))} files, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
