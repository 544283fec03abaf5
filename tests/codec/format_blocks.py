"""The encodings of blocks, read a second time: from codec/FORMAT.md alone, with Python's standard library.

Slow and plain on purpose: each function is one section of FORMAT.md. It shares nothing with the codec in C++, so that what the
two agree on is what the text says. Whatever the text forbids raises Damage.
"""
from itertools import accumulate


class Damage(ValueError):
    """The bytes are not what FORMAT.md allows."""


def require(condition, what):
    if not condition:
        raise Damage(what)


class Reader:
    """Integers and runs of bytes, from the front; little-endian."""

    def __init__(self, data):
        self.data, self.at = bytes(data), 0

    def take(self, count):
        require(len(self.data) - self.at >= count, "too few bytes")
        self.at += count
        return self.data[self.at - count:self.at]

    def integer(self, width):
        return int.from_bytes(self.take(width), "little")

    def varint(self):
        value = 0
        for place in range(10):
            byte = self.integer(1)
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                require(byte != 0 or place == 0, "varint is not in its shortest form")
                require(value < 1 << 64, "varint is past 64 bits")
                return value
        raise Damage("varint is longer than ten bytes")

    def sized_bytes(self):
        return self.take(self.integer(4))

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        require(self.at == len(self.data), "bytes are left over")


class BitReader:
    """Bits from the lowest of each byte; a field of several bits has its lowest first."""

    def __init__(self, data):
        self.value, self.bits, self.at = int.from_bytes(data, "little"), 8 * len(data), 0

    def take(self, count):
        require(self.bits - self.at >= count, "too few bits")
        self.at += count
        return self.value >> (self.at - count) & ((1 << count) - 1)

    def end(self):
        require(self.bits - self.at < 8 and self.value >> self.at == 0, "bits are left over")


class Elements:
    """A block as patterns of one width."""

    def __init__(self, data, width):
        self.width = width if len(data) % width == 0 else 1
        self.mask = (1 << (8 * self.width)) - 1
        self.values = [int.from_bytes(data[i:i + self.width], "little") for i in range(0, len(data), self.width)]

    def bytes(self):
        return b"".join(v.to_bytes(self.width, "little") for v in self.values)

    def step(self, place, by):
        self.values[place] = (self.values[place] + by) & self.mask


STEP_TOKENS = {1: 26, 2: 42, 4: 74, 8: 138}


def step_of(token, raw):
    """A token and its raw bits, as a signed number; `raw` is a BitReader."""
    if token < 16:
        return (token // 2 + 1) * (-1 if token % 2 else 1)
    exponent = (token - 16) // 2 + 3
    low = raw.take(min(exponent, 32))
    if exponent > 32:
        low |= raw.take(exponent - 32) << 32
    return ((1 << exponent) + low) * (-1 if token % 2 else 1)


def lz4_block(data, size):
    """One LZ4 block, as its own specification says."""
    reader, out = Reader(data), bytearray()

    def length(nibble):
        total = nibble
        while nibble == 15:
            more = reader.integer(1)
            total += more
            if more != 255:
                break
        return total

    while True:
        token = reader.integer(1)
        out += reader.take(length(token >> 4))
        require(len(out) <= size, "lz4: more bytes than the block has")
        if reader.at == len(reader.data):
            break
        offset = reader.integer(2)
        require(0 < offset <= len(out), "lz4: a match before the beginning")
        count = length(token & 15) + 4
        require(len(out) + count <= size, "lz4: more bytes than the block has")
        for _ in range(count):
            out.append(out[-offset])
    require(len(out) == size, "lz4: fewer bytes than the block has")
    return bytes(out)


def canonical_code(lengths):
    """(length, code as its bits are met in the stream) -> token."""
    used = sorted((bits, token) for token, bits in enumerate(lengths) if bits)
    require(all(bits <= 12 for bits, _ in used), "code length past 12")
    space = sum(1 << (12 - bits) for bits, _ in used)
    require(space == 1 << 12 or [bits for bits, _ in used] == [1], "the code space is not filled exactly")
    codes, code, before = {}, 0, used[0][0]
    for number, (bits, token) in enumerate(used):
        code = 0 if number == 0 else (code + 1) << (bits - before)
        before = bits
        codes[bits, code] = token
    return codes


def next_code(codes, stream):
    code = 0
    for bits in range(1, 13):
        code = code << 1 | stream.take(1)
        if (bits, code) in codes:
            return codes[bits, code]
    raise Damage("no such code")


def sparse(data, old, width):
    block, reader = Elements(old, width), Reader(data)
    changes, rice, count = reader.varint(), reader.integer(1), reader.integer(1)
    require(1 <= changes <= len(block.values), "sparse: changes")
    require(rice <= 21 and 1 <= count <= STEP_TOKENS[block.width], "sparse: parameters")
    nibbles = [half for byte in reader.take((count + 1) // 2) for half in (byte & 15, byte >> 4)]
    require(nibbles[count - 1] != 0 and not any(nibbles[count:]), "sparse: code lengths")
    codes = canonical_code(nibbles[:count])
    gaps = BitReader(reader.take(reader.varint()))
    steps = BitReader(reader.rest())
    place = -1
    for _ in range(changes):
        quotient = 0
        while quotient < 24 and gaps.take(1) == 0:
            quotient += 1
        if quotient < 24:
            gap = quotient << rice | gaps.take(rice)
        else:
            require(gaps.take(1) == 1, "sparse: gap")
            gap = gaps.take(22)
        place += gap + 1
        require(place < len(block.values), "sparse: a change past the block")
        block.step(place, step_of(next_code(codes, steps), steps))
    gaps.end()
    steps.end()
    return block.bytes()


def frequencies(stream, count_max):
    count = stream.take(9)
    require(count <= count_max, "frequencies: too many tokens")
    table = []
    for _ in range(count):
        bits = stream.take(4)
        require(bits <= 12, "frequencies: length")
        table.append(1 << (bits - 1) | stream.take(bits - 1) if bits else 0)
    require(not table or (table[-1] != 0 and sum(table) == 2048), "frequencies: sum")
    return table


def slots_of(table):
    """For each of the 2048 remainders: token, frequency, frequency of the tokens before."""
    before = [0, *accumulate(table)]
    return [(token, f, before[token]) for token, f in enumerate(table) for _ in range(f)]


class Rans:
    def __init__(self, states, words):
        require(all(state >= 1 << 16 for state in states), "rANS: state")
        self.states, self.words, self.at = list(states), words, 0

    def symbol(self, place, slots):
        lane = place % len(self.states)
        state = self.states[lane]
        token, frequency, before = slots[state % 2048]
        state = frequency * (state // 2048) + state % 2048 - before
        if state < 1 << 16:
            require(self.at < len(self.words), "rANS: too few words")
            state = state << 16 | self.words[self.at]
            self.at += 1
        self.states[lane] = state
        return token

    def run(self, slots, count):
        return [self.symbol(place, slots) for place in range(count)]

    def end(self):
        require(self.at == len(self.words) and all(s == 1 << 16 for s in self.states), "rANS: not at its end")


def rans_of(reader, lanes, words):
    states = [reader.integer(4) for _ in range(lanes)]
    return Rans(states, [reader.integer(2) for _ in range(words)])


class ClassModel:
    """One model of a frame: which class and which context each key has, and their tables."""

    def __init__(self, stream):
        self.class_of = self.partition(stream)
        self.context_of = self.partition(stream)
        self.gaps = []  # per class: low bits, table
        for _ in range(max(self.class_of) + 1):
            low_bits = stream.take(5)
            require(low_bits <= 22, "class: low bits")
            self.gaps.append((low_bits, frequencies(stream, 16)))
        self.steps = [frequencies(stream, max(STEP_TOKENS.values())) for _ in range(max(self.context_of) + 1)]
        require(all(self.steps), "class: a context without a table")

    @staticmethod
    def partition(stream):
        firsts = [0] + [stream.take(8) for _ in range(stream.take(3))]
        require(all(a < b for a, b in zip(firsts, firsts[1:])), "class: keys do not ascend")
        return [sum(first <= key for first in firsts) - 1 for key in range(256)]


def class_models(tables):
    stream = BitReader(tables)
    models = [ClassModel(stream) for _ in range(stream.take(4) + 1)]
    stream.end()
    return models


def class_block(data, old, width, models):
    block, reader = Elements(old, width), Reader(data)
    head = reader.integer(1)
    lanes = head & 7
    require(lanes <= 5 and head >> 3 < len(models), "class: head")
    model = models[head >> 3]
    require(all(len(table) <= STEP_TOKENS[block.width] for table in model.steps), "class: tokens of another width")
    counts = [reader.varint() for _ in model.gaps]
    require(sum(counts) <= len(block.values), "class: more gaps than elements")
    require(all(count == 0 or table for count, (_, table) in zip(counts, model.gaps)), "class: gaps without a table")
    words = reader.varint()
    rans = rans_of(reader, 1 << lanes, words)

    def key(pattern):
        top = pattern >> (8 * block.width - 8)
        return (top << 1 & 255) | (pattern >> (8 * block.width - 9) & 1 if block.width > 1 else 0)

    keys = [key(pattern) for pattern in block.values]
    tokens = [rans.run(slots_of(table), count) for count, (_, table) in zip(counts, model.gaps)]
    low_bits = [r for symbols, (r, _) in zip(tokens, model.gaps) for token in symbols if token < 15]
    low = BitReader(reader.take((sum(low_bits) + 7) // 8))
    changed = []
    for number, symbols in enumerate(tokens):
        places = [place for place, k in enumerate(keys) if model.class_of[k] == number]
        r, rank = model.gaps[number][0], 0
        for token in symbols:
            if token == 15:
                rank += 15 << r
                continue
            rank += (token << r) + low.take(r)
            require(rank < len(places), "class: a change past the class")
            changed.append(places[rank])
            rank += 1
    low.end()
    changed.sort()
    slots = [slots_of(table) for table in model.steps]
    steps = [rans.symbol(number, slots[model.context_of[keys[place]]]) for number, place in enumerate(changed)]
    rans.end()
    raw = BitReader(reader.rest())
    for place, token in zip(changed, steps):
        block.step(place, step_of(token, raw))
    raw.end()
    return block.bytes()


def planes(data, size, width):
    width = width if size % width == 0 else 1
    reader, count = Reader(data), size // width
    values = [0] * count
    for plane in range(width):
        lanes = reader.integer(1)
        if lanes == 255:
            symbols = reader.take(count)
        else:
            require(lanes <= 5, "planes: lanes")
            stream = BitReader(reader.take(reader.varint()))
            table = frequencies(stream, 256)
            stream.end()
            require(table, "planes: no frequencies")
            words = reader.varint()
            rans = rans_of(reader, 1 << lanes, words)
            symbols = rans.run(slots_of(table), count)
            rans.end()
        for place, symbol in enumerate(symbols):
            values[place] |= symbol << (8 * plane)
    reader.end()
    bits = 8 * width
    return b"".join((v >> 1 | (v & 1) << (bits - 1)).to_bytes(width, "little") for v in values)


ENCODINGS = ("raw", "lz4", "xor+lz4", "sparse", "class", "planes")


def decode_block(encoding, data, old, size, width, models):
    """The new bytes of one block; `old` are its `size` bytes in the base."""
    if encoding == "raw":
        require(len(data) == size, "raw: size")
        return data
    if encoding == "lz4":
        return lz4_block(data, size)
    if encoding == "xor+lz4":
        return bytes(a ^ b for a, b in zip(old, lz4_block(data, size)))
    if encoding == "sparse":
        return sparse(data, old, width)
    if encoding == "class":
        return class_block(data, old, width, models)
    return planes(data, size, width)
