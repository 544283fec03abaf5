"""FORMAT.md is enough for a second implementation: format_reference.py, written from the text alone, turns bases into new
checkpoints by what `relayctl delta encode` wrote, and every byte is compared. It also refuses what the text forbids.
"""
import hashlib
import pathlib
import random
import re
import struct

from format_blocks import ENCODINGS, Damage, decode_block
from format_reference import DTYPES, FRAME, WIDTHS, Image, apply, digest, frame_entries, records
from relayctl_case import RelayctlCase, bf16_weights, main, stepped

FORMAT = pathlib.Path(__file__).parents[2] / "codec" / "FORMAT.md"
BLOCK = 16384
OTHER_ELEMENTS = {"F4": (2, 1), "F6_E2M3": (4, 3), "F6_E3M2": (4, 3), "C64": (1, 8)}  # so many in so many bytes


def noise(count, seed):
    return random.Random(seed).randbytes(count)


def patterns(width, *values):
    return b"".join(v.to_bytes(width, "little") for v in values)


def moved_by_any_step(data, width, places, seed):
    """Single elements moved by steps of every size, up and down, so that all tokens and raw bits have their turn."""
    rng = random.Random(seed)
    out, mask = bytearray(data), (1 << (8 * width)) - 1
    for number, place in enumerate(places):
        exponent = number % (8 * width)
        step = rng.randrange(1 << exponent, 2 << exponent) * (-1 if number % 3 == 0 else 1)
        at = place * width
        value = (int.from_bytes(out[at:at + width], "little") + step) & mask
        out[at:at + width] = value.to_bytes(width, "little")
    return bytes(out)


def special_values():
    """Every special BF16 pattern beside every other: NaN payloads, infinities, both zeros, subnormals, the largest."""
    some = (0x0000, 0x8000, 0x7f80, 0xff80, 0x7f81, 0xffc1, 0x7fff, 0xffff, 0x0001, 0x8001, 0x007f, 0x0080, 0x7f7f)
    pairs = [(a, b) for a in some for b in some]
    return patterns(2, *(a for a, _ in pairs)), patterns(2, *(b for _, b in pairs))


def pairs_of_every_kind():
    """Tensors, old and new: name -> (dtype, old bytes, new bytes)."""
    out = {}
    for seed, dtype in enumerate(("F8_E4M3", "U8", "BF16", "F16", "F32", "I32", "F64", "I64")):
        width = WIDTHS[dtype]
        elements = 40000 // width
        old = bf16_weights(elements, seed) if dtype == "BF16" else noise(elements * width, seed)
        out[f"few.{dtype}"] = dtype, old, moved_by_any_step(old, width, range(5, elements, 211), seed)
        out[f"many.{dtype}"] = dtype, old, stepped(old, 0.2, seed + 100, width)
        out[f"wide.{dtype}"] = dtype, old, moved_by_any_step(old, width, range(3, elements, 7), seed)
        out[f"other.{dtype}"] = dtype, old, noise(len(old), seed + 200)
        out[f"one.{dtype}"] = dtype, old[:width], moved_by_any_step(old[:width], width, [0], seed)
        out[f"same.{dtype}"] = dtype, old, old
    weights = bf16_weights(20000, 50)
    out["trained"] = "BF16", weights, stepped(weights, 0.05, 51)
    for dtype, form in (("BF16", None), ("F32", "<f"), ("F64", "<d")):
        rng = random.Random(52)
        new = bf16_weights(20000, 52) if form is None else b"".join(struct.pack(form, rng.gauss(0, 0.02)) for _ in range(9000))
        out[f"renewed.{dtype}"] = dtype, noise(len(new), 55), new
    out["narrow"] = "F8_E4M3", noise(20000, 56), bytes(random.Random(57).choices(range(0x30, 0x38), k=20000))
    out["cleared"] = "F32", noise(40000, 53), bytes(40000)
    text = noise(40000, 54)
    out["masked"] = "F64", text, bytes(b ^ (0xa5 if i % 8 < 6 else 0) for i, b in enumerate(text))
    old, new = special_values()
    out["special"] = "BF16", old, new
    out["empty"] = "F16", b"", b""
    return out


class FormatReference(RelayctlCase):
    def encode(self, pairs, *options):
        for name, side in (("base", 1), ("new", 2)):
            tensors = {n: (p[0], self.shape(p[0], p[side]), p[side]) for n, p in pairs.items()}
            self.checkpoint(name, tensors, {"config.json": name.encode(), "kept.json": b"{}"})
        self.relayctl("delta", "encode", "base", "new", "-o", "step.delta", *options)
        return (self.dir / "step.delta").read_bytes()

    @staticmethod
    def shape(dtype, data):
        elements, of_bytes = OTHER_ELEMENTS.get(dtype, (1, WIDTHS[dtype]))
        return [len(data) // of_bytes * elements]

    def check(self, pairs, block_bytes=BLOCK):
        delta = self.encode(pairs, "--block-bytes", block_bytes)
        image = Image(self.dir / "base")
        met, files, end = apply(delta, image)
        for name, (_, _, new) in pairs.items():
            self.assertEqual(bytes(image.tensors[name.encode()][2]), new, name)
        self.assertEqual(files, {"config.json": b"new"})
        self.assertEqual({n: sha256 for n, (_, sha256) in end.companions.items()},
                         {"config.json": hashlib.sha256(b"new").digest(), "kept.json": hashlib.sha256(b"{}").digest()})
        return met

    def test_every_encoding_decodes_to_the_new_checkpoint_byte_for_byte(self):
        met = {(encoding, WIDTHS[dtype]) for encoding, dtype in self.check(pairs_of_every_kind())}
        every = {(encoding, width) for encoding in ("raw", "sparse", "class") for width in (1, 2, 4, 8)}
        self.assertEqual(every - met, set())
        self.assertLessEqual({("planes", 1), ("planes", 2), ("planes", 4)}, met)
        self.assertEqual({encoding for encoding, _ in met}, set(ENCODINGS))

    def test_a_block_of_the_default_size_as_training_changes_it(self):
        old = bf16_weights(1 << 19, 60)
        self.assertEqual(self.check({"w": ("BF16", old, stepped(old, 0.05, 61))}, 1 << 20), {("class", "BF16")})

    def test_every_dtype_has_its_number_and_width_and_packed_ones_are_bytes(self):
        pairs = {}
        for seed, dtype in enumerate(DTYPES):
            old = noise(6 * 400 * WIDTHS[dtype], seed)
            pairs[dtype.lower()] = dtype, old, stepped(old, 0.1, seed, WIDTHS[dtype])
        self.assertEqual({dtype for _, dtype in self.check(pairs)}, set(DTYPES))

    def test_a_flipped_bit_of_a_frame_never_goes_unseen(self):
        old = bf16_weights(3000, 8)
        delta = self.encode({"w": ("BF16", old, stepped(old, 0.1, 9)), "v": ("F32", old, noise(6000, 10))})
        payload = next(r.payload for r in records(delta) if r.type == FRAME)
        rng = random.Random(11)
        for _ in range(60):
            bit = rng.randrange(8 * len(payload))
            damaged = bytearray(payload)
            damaged[bit // 8] ^= 1 << bit % 8
            self.assertNotEqual(self.decoded(damaged), self.decoded(payload), f"bit {bit}")

    def decoded(self, payload):
        image = Image(self.dir / "base")
        try:
            entries, models = frame_entries(payload)
            out = []
            for e in entries:
                dtype, _, old = image.tensors[image.names[e.tensor]]
                new = decode_block(e.encoding, e.data, bytes(old), len(old), WIDTHS[dtype], models)
                out.append((e.tensor, e.block, digest(new) == e.digest))
            return out
        except (Damage, IndexError) as damage:
            return str(damage)


class WorkedExample(RelayctlCase):
    def example(self, name):
        text = re.search(rf"^```hex {name}\n(.*?)^```", FORMAT.read_text(), re.S | re.M).group(1)
        lines = (re.match(r"(?:[0-9a-f]{2}(?: {1,2}|$))+", line) for line in text.splitlines())
        return bytes.fromhex("".join(line.group(0) for line in lines))

    def test_both_forms_decode_to_what_the_text_says(self):
        (record,) = records(self.example("record"))
        for encoding, payload in (("sparse", record.payload), ("class", self.example("class payload"))):
            (entry,), models = frame_entries(payload)
            new = decode_block(entry.encoding, entry.data, self.example("base"), 32, 2, models)
            self.assertEqual((entry.encoding, entry.tensor, entry.block, new, digest(new)),
                             (encoding, 2, 5, self.example("next"), entry.digest))


if __name__ == "__main__":
    main()
