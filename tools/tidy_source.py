"""The files that tidy.py reads: their text, and their code with comments and the contents of strings blanked out."""

import bisect
import pathlib
import re

FOLDERS = (".ci", "cmake", "codec", "config", "deploy", "relay", "tests", "tools", "topology")
SUFFIXES = (".hpp", ".cpp", ".py", ".sh", ".md", ".cmake", ".yaml", ".json", ".txt", ".service", ".in")
SKIPPED = ("tests/data/", "tests/golden/", "tests/fuzz/corpus/")

# Raw strings, comments, strings, characters. A quote after a hex digit separates digits (1'000'000).
TOKEN = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r"|//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.S)


def blanked(match):
    text = match.group(0)
    keep = 1 if text[0] in "\"'" else 0
    inner = text[keep:len(text) - keep]
    return text[:keep] + re.sub(r"[^\n]", " ", inner) + text[len(text) - keep:]


class Source:
    """One file. `code` has the same length and lines as `text`."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.suffix = pathlib.PurePosixPath(path).suffix
        self.code = TOKEN.sub(blanked, text) if self.suffix in (".hpp", ".cpp") else text
        self._starts = [0] + [m.end() for m in re.finditer("\n", text)]

    def line_of(self, offset):
        return bisect.bisect_right(self._starts, offset)


def load_tree(root):
    """Path below `root` to Source, for every text file of the repository; build trees and test data are left out."""
    root = pathlib.Path(root)
    files = [p for p in root.glob("*") if p.is_file()]
    for folder in FOLDERS:
        files += [p for p in (root / folder).rglob("*") if p.is_file()]
    tree = {}
    for file in sorted(files):
        path = file.relative_to(root).as_posix()
        if "__pycache__" in path or path.startswith(SKIPPED) or file.suffix not in SUFFIXES:
            continue
        tree[path] = Source(path, file.read_text(encoding="utf-8", errors="replace"))
    return tree
