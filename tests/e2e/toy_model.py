"""Small checkpoints for the tests, and the training steps between them. Deterministic in the seed, bits only.

The tensors are those that went wrong elsewhere: BF16 matrices of several blocks, an F32 gate, an F8 matrix with an F32 scale,
an I64 scalar, a tensor of no bytes, sizes that are no multiple of anything, and names out of order.
"""
import random
import struct

from safetensors_py import Tensor, bytes_of

WIDTH = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I64": 8, "F8_E4M3": 1, "U8": 1}

# Not in the order of the names: the layout is sorted, the files are not.
SHAPES = [
    ("model.norm.weight", "BF16", (1021,)),
    ("model.embed_tokens.weight", "BF16", (997, 512)),
    ("model.layers.1.mlp.gate.weight", "F32", (64, 509)),
    ("model.layers.0.self_attn.qkv.weight", "BF16", (768, 512)),
    ("model.layers.0.mlp.up.weight", "BF16", (1024, 512)),
    ("model.layers.1.mlp.experts.weight", "F8_E4M3", (512, 600)),
    ("model.layers.1.mlp.experts.weight_scale", "F32", (4, 5)),
    ("model.layers.1.self_attn.qkv.weight", "BF16", (768, 512)),
    ("model.layers.1.mlp.down.weight", "BF16", (512, 1024)),
    ("model.empty", "F32", (0, 7)),
    ("model.step", "I64", ()),
    ("lm_head.weight", "BF16", (997, 512)),
]


def make(seed=1, scale=1):
    """About 5 MB times `scale` (the first dimension of the matrices grows)."""
    source = random.Random(seed)
    tensors = {}
    for name, dtype, shape in SHAPES:
        if len(shape) == 2 and shape[0] > 4:
            shape = (shape[0] * scale, shape[1])
        tensors[name] = Tensor(dtype, shape, _weights(source, dtype, bytes_of(dtype, shape)))
    return tensors


def _weights(source, dtype, size):
    """Bits like those of weights: signs and fractions at random, exponents in a narrow band."""
    if dtype != "BF16":
        return source.randbytes(size)
    raw = bytearray(source.randbytes(size))
    highs = bytes((value & 0x80) | 0x39 + (value & 0x03) for value in range(256))
    raw[1::2] = raw[1::2].translate(highs)
    return bytes(raw)


def step(tensors, rate, seed, only=None):
    """A copy in which `rate` of the elements of each tensor (at least one, if it has any) moved by one bit pattern."""
    source = random.Random(seed)
    out = {}
    for name, tensor in tensors.items():
        width = WIDTH[tensor.dtype]
        count = len(tensor.data) // width
        if count == 0 or (only is not None and name not in only):
            out[name] = tensor
            continue
        data = bytearray(tensor.data)
        for index in source.sample(range(count), max(1, round(count * rate))):
            at = index * width
            value = int.from_bytes(data[at:at + width], "little") + source.choice((-1, 1))
            data[at:at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        out[name] = Tensor(tensor.dtype, tensor.shape, bytes(data))
    return out


def changed_share(before, after):
    """Share of the elements whose bits differ."""
    changed = total = 0
    for name, tensor in before.items():
        width = WIDTH[tensor.dtype]
        old, new = tensor.data, after[name].data
        total += len(old) // width
        if old != new:
            changed += sum(old[at:at + width] != new[at:at + width] for at in range(0, len(old), width))
    return changed / max(total, 1)


def special_bits():
    """Every kind of NaN, infinity, zero and subnormal, as bits, in BF16, F16, F32 and F64."""
    patterns = {
        "BF16": ("<H", [0x7FC0, 0xFFC1, 0x7F81, 0xFF81, 0x7FBF, 0x7F80, 0xFF80, 0x8000, 0x0000, 0x0001, 0x8001, 0x007F]),
        "F16": ("<H", [0x7E00, 0xFE01, 0x7C01, 0xFC01, 0x7DFF, 0x7C00, 0xFC00, 0x8000, 0x0000, 0x0001, 0x8001, 0x03FF]),
        "F32": ("<I", [0x7FC00000, 0xFFC00001, 0x7F800001, 0xFF800001, 0x7FBFFFFF, 0x7F800000, 0xFF800000, 0x80000000,
                       0x00000000, 0x00000001, 0x80000001, 0x007FFFFF]),
        "F64": ("<Q", [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0xFFF0000000000001, 0x7FF7FFFFFFFFFFFF,
                       0x7FF0000000000000, 0xFFF0000000000000, 0x8000000000000000, 0, 1, 0x8000000000000001,
                       0x000FFFFFFFFFFFFF]),
    }
    return {dtype: [struct.pack(form, value) for value in values] for dtype, (form, values) in patterns.items()}
