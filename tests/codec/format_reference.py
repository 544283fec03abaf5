"""A second reader of delta files, written from codec/FORMAT.md alone: records, frames, layout, and what becomes of a base.

It proves that the text is enough for another implementation: format_reference_test.py lets it apply what `relayctl delta encode`
wrote and compares every byte. Digests come from the system's xxHash library, the rest is Python's standard library. Whatever the
text forbids raises Damage. Unsigned files only: the signature is plain Ed25519 and has tests of its own.
"""
import ctypes
import ctypes.util
import hashlib
import json
import struct
from collections import namedtuple

from format_blocks import ENCODINGS, Reader, class_models, decode_block, require

MAGIC = 0x594c5244
BEGIN, FRAME, FILE, END = 1, 2, 3, 4
PAYLOAD_BYTES_MAX = {BEGIN: 64 << 10, FRAME: 6 << 20, FILE: 32 << 20, END: 4 << 20}
DTYPES = ("BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "I16", "U16", "F16", "BF16", "I32",
          "U32", "F32", "C64", "F64", "I64", "U64", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
WIDTHS = {**dict.fromkeys(DTYPES, 1), **dict.fromkeys(DTYPES[9:13], 2), **dict.fromkeys(DTYPES[13:17], 4),
          **dict.fromkeys(DTYPES[17:20], 8)}

Record = namedtuple("Record", "type mesh epoch version sequence stripe payload")
Entry = namedtuple("Entry", "encoding tensor block digest data")
Begin = namedtuple("Begin", "base_version base_digest layout_digest block_bytes stripe_count total_bytes")
End = namedtuple("End", "frames changed_blocks changed_elements image_digest layout_digest companions")


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash"))
_xxhash.XXH3_128bits.restype = _Hash128
_xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def digest(data):
    value = _xxhash.XXH3_128bits(bytes(data), len(data))
    return struct.pack(">QQ", value.high, value.low)


def records(data):
    """The records of a delta file, each checked as far as an unsigned one can be."""
    reader = Reader(data)
    while reader.at < len(reader.data):
        start = reader.at
        magic, major, _, kind, flags, stripe, reserved = (reader.integer(w) for w in (4, 2, 2, 2, 2, 2, 2))
        mesh = reader.take(16)
        epoch, version, sequence, payload_bytes, reserved2 = (reader.integer(w) for w in (8, 8, 8, 4, 4))
        sha256, signature = reader.take(32), reader.take(64)
        require(reader.at - start == 160 and magic == MAGIC and major == 1, "record: magic or version")
        require(flags == 0 and not any(signature), "record: signed, or unknown flags")
        require(reserved == 0 and reserved2 == 0, "record: reserved")
        require(payload_bytes <= PAYLOAD_BYTES_MAX.get(kind, 64 << 20), "record: too large")
        payload = reader.take(payload_bytes)
        require(hashlib.sha256(payload).digest() == sha256, "record: SHA-256")
        yield Record(kind, mesh, epoch, version, sequence, stripe, payload)


def begin_of(payload):
    reader = Reader(payload)
    out = Begin(reader.integer(8), reader.take(16), reader.take(16), reader.integer(4), reader.integer(2), reader.integer(8))
    reader.end()
    require(out.stripe_count >= 1 and out.block_bytes in [1 << n for n in range(12, 23)], "BEGIN: limits")
    return out


def end_of(payload):
    reader = Reader(payload)
    counts = [reader.integer(8) for _ in range(3)]
    image, layout = reader.take(16), reader.take(16)
    companions = [(reader.sized_bytes(), reader.integer(8), reader.take(32)) for _ in range(reader.integer(4))]
    reader.end()
    names = [name for name, _, _ in companions]
    require(names == sorted(set(names)), "END: names")
    return End(*counts, image, layout, {name.decode(): (size, sha256) for name, size, sha256 in companions})


def file_of(payload):
    """The name and content of a companion file."""
    reader = Reader(payload)
    name, sha256, content = reader.sized_bytes(), reader.take(32), reader.sized_bytes()
    reader.end()
    require(hashlib.sha256(content).digest() == sha256, "FILE: SHA-256")
    return name.decode(), content


def frame_entries(payload):
    """The entries of a FRAME and its class models."""
    reader = Reader(payload)
    count = reader.varint()
    require(1 <= count <= 64, "FRAME: count")
    tables = reader.take(reader.varint())
    heads, tensor, block = [], None, None
    for _ in range(count):
        tag, place, data_bytes, of = reader.varint(), reader.varint(), reader.varint(), reader.take(16)
        encoding, increase = tag & 15, tag >> 4
        require(encoding < len(ENCODINGS) and data_bytes >= 1, "FRAME: entry")
        same = tensor is not None and increase == 0
        block = block + 1 + place if same else place
        tensor = increase if tensor is None else tensor + increase
        require(tensor < 1 << 32 and block < 1 << 32, "FRAME: index")
        heads.append((ENCODINGS[encoding], tensor, block, of, data_bytes))
    entries = [Entry(e, t, b, of, reader.take(size)) for e, t, b, of, size in heads]
    reader.end()
    has_class = any(e.encoding == "class" for e in entries)
    require(has_class == bool(tables), "FRAME: tables")
    return entries, class_models(tables) if has_class else []


class Image:
    """Tensors by name, from the safetensors files of a directory: name -> (dtype, shape, bytes)."""

    def __init__(self, directory):
        self.tensors = {}
        for path in sorted(directory.glob("*.safetensors")):
            content = path.read_bytes()
            header_bytes = 8 + int.from_bytes(content[:8], "little")
            for name, about in json.loads(content[8:header_bytes]).items():
                if name != "__metadata__":
                    first, last = about["data_offsets"]
                    self.tensors[name.encode()] = (about["dtype"], about["shape"],
                                                   bytearray(content[header_bytes + first:header_bytes + last]))
        self.names = sorted(self.tensors)

    def layout(self, block_bytes):
        out = struct.pack("<II", block_bytes, len(self.names))
        for name in self.names:
            dtype, shape, _ = self.tensors[name]
            out += struct.pack("<BBHI", DTYPES.index(dtype), 0, len(shape), len(name)) + name
            out += struct.pack(f"<{len(shape)}Q", *shape)
        return out

    def digest_table(self, block_bytes):
        blocks = (data[i:i + block_bytes] for _, _, data in (self.tensors[n] for n in self.names)
                  for i in range(0, len(data), block_bytes))
        return b"".join(map(digest, blocks))


def apply(delta, image):
    """Makes of `image` what the delta file says; returns (encoding, dtype) of the blocks, the changed files, and END."""
    begin, end, frames, changed, met, files = None, None, 0, 0, set(), {}
    for number, record in enumerate(records(delta)):
        require(record.sequence == number and record.stripe == 0 and end is None, "delta: order")
        if record.type == BEGIN:
            begin = begin_of(record.payload)
            require(number == 0 and digest(image.layout(begin.block_bytes)) == begin.layout_digest, "BEGIN: layout")
            require(digest(image.digest_table(begin.block_bytes)) == begin.base_digest, "BEGIN: another base")
            require(sum(len(data) for _, _, data in image.tensors.values()) == begin.total_bytes, "BEGIN: bytes")
        elif record.type == FRAME:
            entries, models = frame_entries(record.payload)
            for entry in entries:
                met.add((entry.encoding, apply_entry(entry, models, image, begin.block_bytes)))
            frames, changed = frames + 1, changed + len(entries)
        elif record.type == FILE:
            name, content = file_of(record.payload)
            files[name] = content
        elif record.type == END:
            end = end_of(record.payload)
    require(end is not None and (end.frames, end.changed_blocks) == (frames, changed), "END: counts")
    require(digest(image.digest_table(begin.block_bytes)) == end.image_digest, "END: image")
    require(end.layout_digest == begin.layout_digest, "END: layout")
    return met, files, end


def apply_entry(entry, models, image, block_bytes):
    require(entry.tensor < len(image.names), "FRAME: no such tensor")
    dtype, _, content = image.tensors[image.names[entry.tensor]]
    first = entry.block * block_bytes
    require(first < len(content), "FRAME: no such block")
    old = bytes(content[first:first + block_bytes])
    new = decode_block(entry.encoding, entry.data, old, len(old), WIDTHS[dtype], models)
    require(digest(new) == entry.digest, f"FRAME: digest of {entry.encoding} block {entry.block}")
    content[first:first + block_bytes] = new
    return dtype
