"""A reader and writer of safetensors checkpoints that shares no code with the product.

What it is for: the product must never be the judge of its own bytes. Whatever a test says about a host's content, it says
through this file: `struct`, `json`, and nothing else. The reader keeps the rules of the format (header length, JSON object,
offsets without hole or overlap, sizes that follow from dtype and shape), since a lenient judge would miss a damaged file.
"""
import json
import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

INDEX_NAME = "model.safetensors.index.json"
HEADER_BYTES_MAX = 100_000_000
DEPTH_MAX = 127  # where the reference's JSON reader stops

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}


class BadFile(Exception):
    """The file is no safetensors file, or the directory no checkpoint."""


@dataclass(frozen=True)
class Tensor:
    """dtype and shape as the header has them; `data` is any bytes-like object."""
    dtype: str
    shape: tuple
    data: object

    def same(self, other):
        return self.dtype == other.dtype and self.shape == other.shape and self.data == other.data


def bytes_of(dtype, shape):
    count = 1
    for dimension in shape:
        count *= dimension
        if count >= 1 << 64 or dimension >= 1 << 64:  # the reference multiplies from left to right in 64 bits
            raise BadFile(f"shape {list(shape)} has more elements than 64 bits count")
    bits = count * BITS[dtype]
    if bits % 8:
        raise BadFile(f"{count} elements of {dtype} do not end at a byte")
    return bits // 8


def _refuse_doubles(pairs):
    out = {}
    for key, value in pairs:
        if key in out:
            raise BadFile(f"key {key!r} appears twice")
        out[key] = value
    return out


def _depth(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _parse_header(text, path):
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_refuse_doubles)
        json.dumps(header, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is no text
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadFile(f"{path}: the header is no JSON: {error}") from None
    if _depth(header) > DEPTH_MAX:
        raise BadFile(f"{path}: the header nests deeper than {DEPTH_MAX}")
    if not text.startswith(b"{") or not isinstance(header, dict):
        raise BadFile(f"{path}: the header is no JSON object")
    return header


def _entries(header, data_bytes, path):
    """(name, dtype, shape, begin, end) in the order of the data; checks that they cover it exactly."""
    entries = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            integers = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
            if not integers or end - begin != bytes_of(dtype, shape):
                raise ValueError("offsets, dtype and shape do not agree")
        except (KeyError, TypeError, ValueError) as error:
            raise BadFile(f"{path}: tensor {name!r}: {error}") from None
        entries.append((name, dtype, shape, begin, end))
    entries.sort(key=lambda entry: (entry[3], entry[4]))
    reached = 0
    for name, _, _, begin, end in entries:
        if begin != reached:
            raise BadFile(f"{path}: tensor {name!r} begins at {begin}, not at {reached}")
        reached = end
    if reached != data_bytes:
        raise BadFile(f"{path}: the tensors end at {reached}, the data at {data_bytes}")
    return entries


def header_bytes(path):
    """The file's first bytes, up to where the data begins."""
    with open(path, "rb") as file:
        prefix = file.read(8)
        if len(prefix) < 8:
            raise BadFile(f"{path}: shorter than its length field")
        (length,) = struct.unpack("<Q", prefix)
        if length > min(HEADER_BYTES_MAX, os.fstat(file.fileno()).st_size - 8):
            raise BadFile(f"{path}: a header of {length} bytes does not fit")
        return prefix + file.read(length)


def read_file(path):
    """name -> Tensor. The data are copies: what changes in the file later does not change them."""
    path = Path(path)
    head = header_bytes(path)
    header = _parse_header(head[8:], path)
    with open(path, "rb") as file:
        file.seek(len(head))
        data = file.read()
    return {name: Tensor(dtype, shape, data[begin:end]) for name, dtype, shape, begin, end in _entries(header, len(data), path)}


def shard_paths(directory):
    """The shards that count, and which tensor the index puts where (None without an index)."""
    directory = Path(directory)
    index = directory / INDEX_NAME
    if index.exists():
        weight_map = json.loads(index.read_text())["weight_map"]
        return [directory / name for name in sorted(set(weight_map.values()))], weight_map
    shards = sorted(directory.glob("*.safetensors"))
    if len(shards) != 1:
        raise BadFile(f"{directory}: no index, and {len(shards)} shards")
    return shards, None


def read_checkpoint(directory):
    """name -> Tensor of a whole directory."""
    shards, weight_map = shard_paths(directory)
    tensors = {}
    for shard in shards:
        for name, tensor in read_file(shard).items():
            if weight_map is None or weight_map.get(name) == shard.name:
                tensors[name] = tensor
    missing = set(weight_map or ()) - set(tensors)
    if missing:
        raise BadFile(f"{directory}: the index promises {sorted(missing)[:3]}, and no shard has them")
    return tensors


class MappedCheckpoint:
    """The same content without copies, for checkpoints that do not fit twice into memory. Close it, or use `with`."""

    def __init__(self, directory):
        self._maps, self.places = [], {}
        shards, weight_map = shard_paths(directory)
        for shard in shards:
            head = header_bytes(shard)
            size = shard.stat().st_size
            entries = _entries(_parse_header(head[8:], shard), size - len(head), shard)
            with open(shard, "rb") as file:
                view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._maps.append(view)
            for name, dtype, shape, begin, end in entries:
                if weight_map is None or weight_map.get(name) == shard.name:
                    self.places[name] = (dtype, shape, view, len(head) + begin, len(head) + end)

    def pieces(self, name, piece_bytes=16 << 20):
        _, _, view, begin, end = self.places[name]
        for at in range(begin, end, piece_bytes):
            yield view[at:min(at + piece_bytes, end)]

    def kind(self, name):
        return self.places[name][:2]

    def close(self):
        for view in self._maps:
            view.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def write_file(path, tensors, metadata=None, pad_to=8):
    """Writes `tensors` in their order. `pad_to` is where the data may begin; 1 leaves them at any address."""
    header, at = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        size = len(tensor.data)
        if size != bytes_of(tensor.dtype, tensor.shape):
            raise BadFile(f"tensor {name!r} has {size} bytes, not {bytes_of(tensor.dtype, tensor.shape)}")
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % pad_to)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.data)


def write_checkpoint(directory, tensors, shards=3, companions=None, pad_to=8):
    """A HuggingFace directory: shards of about equal size with an index, or one file when `shards` is 1."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in (companions or {"config.json": '{"model_type": "toy"}\n'}).items():
        (directory / name).write_text(text)
    if shards == 1:
        write_file(directory / "model.safetensors", tensors, {"format": "pt"}, pad_to)
        return
    total = sum(len(tensor.data) for tensor in tensors.values())
    groups, reached = [{} for _ in range(shards)], 0
    for name, tensor in tensors.items():
        groups[min(shards - 1, reached * shards // max(total, 1))][name] = tensor
        reached += len(tensor.data)
    weight_map = {}
    for number, group in enumerate(groups, 1):
        file_name = f"model-{number:05}-of-{shards:05}.safetensors"
        write_file(directory / file_name, group, {"format": "pt"}, pad_to)
        weight_map.update({name: file_name for name in group})
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / INDEX_NAME).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def difference(expected, found):
    """None when both have the same tensors with the same bytes, else one sentence on the first difference."""
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            return f"tensor {name} is missing"
        if name not in expected:
            return f"tensor {name} is too many"
        want, have = expected[name], found[name]
        if (want.dtype, want.shape) != (have.dtype, have.shape):
            return f"tensor {name} is {have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}"
        if want.data != have.data:
            at = next(i for i, (a, b) in enumerate(zip(want.data, have.data)) if a != b)
            return f"tensor {name} differs at byte {at}: {have.data[at]:#04x}, not {want.data[at]:#04x}"
    return None
