"""relayctl delta stats: counts against checkpoints whose every change is known, and bounds computed a second time."""
import math
import os
import struct
from collections import Counter

from relayctl_case import RelayctlCase, bf16_weights, main, stepped


def bits_of_choice(part, whole):
    if part in (0, whole):
        return 0.0
    p = part / whole
    return -whole * (p * math.log2(p) + (1 - p) * math.log2(1 - p))


def bits_of_symbols(counts):
    total = sum(counts.values())
    return sum(c * math.log2(total / c) for c in counts.values())


class Stats(RelayctlCase):
    def stats(self, base, new, *options):
        for name, tensors in (("base", base), ("new", new)):
            self.checkpoint(name, tensors)
        return self.relayctl("delta", "stats", "base", "new", "-o", "json", *options).json

    def test_every_change_is_counted_by_step_and_sign(self):
        patterns = [0x3f80] * 1000
        changed = list(patterns)
        for i in range(0, 100):
            changed[i] += 1
        for i in range(100, 150):
            changed[i] -= 2
        for i in range(150, 153):
            changed[i] += 20
        changed[153] = 0xbf80  # the sign bit: half of the range, up or down is the same
        out = self.stats({"w": ("BF16", [1000], struct.pack("<1000H", *patterns))},
                         {"w": ("BF16", [1000], struct.pack("<1000H", *changed))})
        self.assertEqual((out["elements"], out["changed_elements"]), (1000, 154))
        self.assertAlmostEqual(out["changed_fraction"], 0.154)
        steps = {(s["magnitude_min"], s["magnitude_max"]): (s["up"], s["down"]) for s in out["steps"]}
        self.assertEqual(steps, {(1, 1): (100, 0), (2, 2): (0, 50), (16, 31): (3, 0), (32768, 65535): (0, 1)})

    def test_changes_are_counted_by_the_exponent_of_the_old_value(self):
        values = [2.0 ** -k for k in range(0, 10) for _ in range(100)]
        old = b"".join(struct.pack("<f", v) for v in values)
        new = bytearray(old)
        for k in range(0, 10):
            for i in range(10 * k):  # 2^-k changes in 10 k of its 100 elements
                new[4 * (100 * k + i)] ^= 1
        out = self.stats({"w": ("F32", [1000], old)}, {"w": ("F32", [1000], bytes(new))})
        (dtype,) = out["dtypes"]
        self.assertEqual(dtype["dtype"], "F32")
        self.assertEqual({e["exponent"]: (e["elements"], e["changed_elements"]) for e in dtype["exponents"]},
                         {-k: (100, 10 * k) for k in range(0, 10)})

    def test_the_bounds_are_the_entropies_of_the_counts(self):
        old = bf16_weights(30000, 3)
        new = stepped(old, 0.04, 4)
        out = self.stats({"w": ("BF16", [30000], old)}, {"w": ("BF16", [30000], new)})
        pairs = list(zip(struct.unpack("<30000H", old), struct.unpack("<30000H", new)))
        classes = {}
        for a, b in pairs:
            classes.setdefault((a >> 7) & 255, []).append((b - a + 32768) % 65536 - 32768)
        def bits(steps):
            changed = [s for s in steps if s != 0]
            return bits_of_choice(len(changed), len(steps)) + bits_of_symbols(Counter(changed))
        order0 = bits([s for steps in classes.values() for s in steps]) / 8
        given = sum(bits(steps) for steps in classes.values()) / 8
        self.assertEqual(out["order0_bound_bytes"], math.ceil(order0 - 1e-6))
        self.assertEqual(out["given_exponent_bound_bytes"], math.ceil(given - 1e-6))

    def test_sizes_are_those_that_encode_writes(self):
        old = bf16_weights(20000, 5)
        out = self.stats({"w": ("BF16", [20000], old), "b": ("U8", [9000], os.urandom(9000))},
                         {"w": ("BF16", [20000], stepped(old, 0.03, 6)), "b": ("U8", [9000], os.urandom(9000))})
        encoded = self.relayctl("--output", "json", "delta", "encode", "base", "new", "-o", "x.delta").json
        for key in ("frames", "changed_blocks", "changed_elements", "encodings", "overhead_bytes"):
            self.assertEqual(out[key], encoded[key], key)
        self.assertEqual(out["payload_bytes"], encoded["frame_payload_bytes"])
        self.assertEqual(out["wire_bytes"], out["payload_bytes"] + 160 * out["frames"])
        self.assertEqual(out["dense_bytes"], 49000)

    def test_threads_do_not_change_the_counts(self):
        old = bf16_weights(40000, 7)
        one = self.stats({"w": ("BF16", [40000], old)}, {"w": ("BF16", [40000], stepped(old, 0.05, 8))},
                         "--block-bytes", 4096, "--threads", 1)
        four = self.relayctl("delta", "stats", "base", "new", "-o", "json", "--block-bytes", 4096, "--threads", 4).json
        self.assertEqual(one, four)

    def test_every_dtype_has_its_counts(self):
        widths = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
                  "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}
        base = {d: (d, [64], b"\x01" * (64 * w)) for d, w in widths.items()}
        new = {d: (d, [64], b"\x02" + data[1:]) for d, (_, _, data) in base.items()}
        out = self.stats(base, new)
        self.assertEqual({d["dtype"]: (d["elements"], d["changed_elements"]) for d in out["dtypes"]},
                         {d: (64, 1) for d in widths})

    def test_equal_and_empty_checkpoints_have_nothing_to_send(self):
        model = {"w": ("F32", [8], bytes(32)), "e": ("F32", [0], b"")}
        out = self.stats(model, model)
        self.assertEqual((out["changed_elements"], out["wire_bytes"], out["steps"]), (0, 0, []))
        self.assertIn("nothing to send", self.relayctl("delta", "stats", "base", "new").out)
        self.checkpoint("nothing", {})
        self.assertRegex(self.relayctl("delta", "stats", "nothing", "nothing").out, r"dense +0 B")

    def test_text_shows_rate_sizes_bounds_steps_and_exponents(self):
        old = bf16_weights(20000, 9)
        self.stats({"w": ("BF16", [20000], old)}, {"w": ("BF16", [20000], stepped(old, 0.03, 10))})
        text = self.relayctl("delta", "stats", "base", "new").out
        for line in (r"^changed +\d+ +[23]\.\d+ % +of 20 000 elements", r"^sent .*x smaller than dense",
                     r"^order-0 bound .*sent is \d\.\d\d of it", r"^given exponents ", r"^encoding +blocks",
                     r"^step +up +down", r"^1 +\d+ +\d+ +100\.00 %", r"^BF16 old value", r"^2\^-6 "):
            self.assertRegex(text, "(?m)" + line)


if __name__ == "__main__":
    main()
