"""The trap of g++ 12 in coroutines: a braced temporary or a capturing lambda in a statement with co_await is destroyed twice.

Without types an aggregate cannot be told from other braced temporaries, so all of them are faults but those of known trivial
types; parentheses, or a name of its own, do in each case. A declaration `Frame f{co_await x};` builds no temporary.
"""

import re

BLOCK_WORDS = ("else", "do", "try", "const", "noexcept", "override", "final", "mutable")
TRIVIAL = re.compile(
    r"(?:std::)?(?:chrono::)?(?:u?int(?:8|16|32|64)_t|size_t|(?:nano|micro|milli)?seconds|minutes|hours|Duration|duration|time_point)$")
DECLARED_BLOCK = re.compile(r"^\s*(?:template\s*<[^;{}]*>\s*)?(?:struct|class|enum|union|namespace|extern|inline\s+namespace)\b", re.S)
LAMBDA = re.compile(r"(?<![\w)\]\[])\s*\[([^\[\]]*)\]\s*(?:\(|mutable\b|noexcept\b|->|\{)")
BLOCK = "\x01"  # stands for a nested block in the text of a statement


def opens_block(code, at, statement_start):
    """Whether the brace at `at` opens a block or a body; otherwise it is an initialiser."""
    before = code[:at].rstrip()
    if not before or before[-1] in ";{})":
        return True
    if before[-1] == "]":
        return True
    statement = code[statement_start:at]
    if DECLARED_BLOCK.match(statement):
        return True
    word = re.search(r"(\w+)$", before)
    if word and word.group(1) in BLOCK_WORDS:
        return True
    # A trailing return type: `-> awaitable<void> {`.
    return bool(re.search(r"->\s*[\w:<>,&*\s]+$", statement))


class Statements:
    """Cuts code into statements; each nested block's statements are found as well, and leave BLOCK in the outer text."""

    def __init__(self, code):
        self.code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.M)
        self.found = []  # (offset, text with one character per character of code)

    def run(self):
        self._block(0)
        return self.found

    def _block(self, at):
        """Reads to the brace that closes the block begun before `at`; returns the offset behind it."""
        code, start, text, depth = self.code, at, [], 0
        closers = []
        while at < len(code):
            c = code[at]
            if c == "{" and opens_block(code, at, start):
                end = self._block(at + 1)
                text.append("{" + BLOCK)
                if depth == 0:
                    self._add(start, text)
                    start, text = end, []
                at = end
                continue
            if c in "({[":
                closers.append(c)
                depth += 1
            elif c in ")]" or (c == "}" and closers and closers[-1] == "{"):
                if closers:
                    closers.pop()
                    depth -= 1
            elif c == "}":
                break
            if c == ";" and depth == 0:
                self._add(start, text)
                start, text = at + 1, []
            else:
                text.append(c)
            at += 1
        self._add(start, text)
        return at + 1

    def _add(self, start, text):
        joined = "".join(text)
        if joined.strip():
            skipped = len(joined) - len(joined.lstrip())
            self.found.append((start + skipped, joined.strip()))


def is_declaration(text, brace):
    """`Type name{` at the beginning of a statement."""
    return bool(re.match(r"^(?:(?:const|static|constexpr|auto)\s+)*[\w:]+(?:<[^;(){}]*>)?[\s&*]+\w+\s*$", text[:brace]))


def braced_temporaries(text):
    for match in re.finditer(r"\{(?!\x01)", text):
        before = text[:match.start()].rstrip()
        if is_declaration(text, match.start()) or (before.endswith("=") and "co_await" not in text[match.start():]):
            continue
        name = re.search(r"([\w:]+(?:<[\w:<>,\s*&]*>)?)$", before)
        if name and TRIVIAL.search(name.group(1)):
            continue
        yield (name.group(1) if name and name.group(1) not in ("return", "co_return") else "") + "{...}"


def coroutine_faults(source, _tree):
    for offset, text in Statements(source.code).run():
        if not re.search(r"\bco_await\b", text):
            continue
        line = source.line_of(offset)
        for what in braced_temporaries(text):
            yield line, f"{what} in a statement with co_await; g++ 12 destroys it twice. Give it a name first"
        for match in LAMBDA.finditer(text):
            if match.group(1).strip():
                yield line, f"lambda [{match.group(1).strip()}] in a statement with co_await; g++ 12 destroys it twice. Give it a name first"
