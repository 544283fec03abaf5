"""relayctl delta stats: counts against checkpoints whose every change is known, and bounds computed a second time."""
import math
import random
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


def bf16_bounds(old, new):
    """Bytes of the entropy of changes and steps: by one chance and table, and by one per exponent of the old value.

    Written from the definition, with every step a symbol of its own: right as long as no step is larger than 7.
    """
    count = len(old) // 2
    classes = {}
    for a, b in zip(struct.unpack(f"<{count}H", old), struct.unpack(f"<{count}H", new)):
        classes.setdefault((a >> 7) & 255, []).append((b - a + 32768) % 65536 - 32768)
    def bits(steps):
        changed = [s for s in steps if s != 0]
        return bits_of_choice(len(changed), len(steps)) + bits_of_symbols(Counter(changed))
    return bits([s for steps in classes.values() for s in steps]) / 8, sum(map(bits, classes.values())) / 8


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
        order0, given = bf16_bounds(old, new)
        self.assertEqual(out["order0_bound_bytes"], math.ceil(order0 - 1e-6))
        self.assertEqual(out["given_exponent_bound_bytes"], math.ceil(given - 1e-6))

    def test_sizes_are_those_that_encode_writes(self):
        old = bf16_weights(20000, 5)
        out = self.stats({"w": ("BF16", [20000], old), "b": ("U8", [9000], random.Random(20).randbytes(9000))},
                         {"w": ("BF16", [20000], stepped(old, 0.03, 6)), "b": ("U8", [9000], random.Random(21).randbytes(9000))})
        encoded = self.relayctl("--output", "json", "delta", "encode", "base", "new", "-o", "x.delta").json
        for key in ("frames", "changed_blocks", "changed_elements", "encodings", "overhead_bytes"):
            self.assertEqual(out[key], encoded[key], key)
        self.assertEqual(out["payload_bytes"], encoded["frame_payload_bytes"])
        self.assertEqual(out["wire_bytes"], out["payload_bytes"] + 160 * out["frames"])
        self.assertEqual(out["dense_bytes"], 49000)

    def test_each_kind_of_tensor_has_its_rate_payload_and_bounds(self):
        layers = {"model.embed_tokens.weight": ("embedding", 0.01), "model.layers.0.self_attn.q_proj.weight": ("attention_q", 0.02),
                  "model.layers.0.mlp.up_proj.weight": ("mlp", 0.05), "model.layers.1.mlp.up_proj.weight": ("mlp", 0.03),
                  "model.norm.weight": ("norm", 0.0), "lm_head.weight": ("head", 0.1)}
        base, new, by_kind = {}, {}, {}
        for seed, (name, (kind, change)) in enumerate(layers.items()):
            old = bf16_weights(12000, seed)
            now = stepped(old, change, 100 + seed)
            base[name], new[name] = ("BF16", [12000], old), ("BF16", [12000], now)
            tensors, before, after = by_kind.get(kind, (0, b"", b""))
            by_kind[kind] = (tensors + 1, before + old, after + now)
        out = self.stats(base, new, "--block-bytes", 4096)
        self.assertEqual([k["kind"] for k in out["kinds"]], ["embedding", "attention_q", "mlp", "norm", "head"])
        for row in out["kinds"]:
            tensors, old, now = by_kind[row["kind"]]
            changed = sum(old[i:i + 2] != now[i:i + 2] for i in range(0, len(old), 2))
            order0, given = bf16_bounds(old, now)
            self.assertEqual((row["tensors"], row["dense_bytes"], row["elements"], row["changed_elements"]),
                             (tensors, len(old), len(old) // 2, changed), row["kind"])
            self.assertEqual(row["changed_fraction"], changed / (len(old) // 2))
            self.assertEqual(row["order0_bound_bytes"], math.ceil(order0 - 1e-6), row["kind"])
            self.assertEqual(row["given_exponent_bound_bytes"], math.ceil(given - 1e-6), row["kind"])
            self.assertEqual(row["payload_bytes"],
                             sum(e["payload_bytes"] for e in row["encodings"]) + row["overhead_bytes"])
            self.assertEqual(row["dense_fraction"], row["payload_bytes"] / len(old))
            self.assertEqual(row["changed_blocks"], sum(e["blocks"] for e in row["encodings"]))
            self.assertEqual(row["bytes_per_changed_element"], row["payload_bytes"] / changed if changed else None)
            # An entry is a digest, an encoding, a place and a length.
            self.assertTrue(19 * row["changed_blocks"] <= row["overhead_bytes"] <= 24 * row["changed_blocks"], row)

    def test_kinds_and_what_they_share_make_what_is_sent(self):
        old, other = bf16_weights(50000, 11), bf16_weights(50000, 12)
        out = self.stats({"a.attn.wq.weight": ("BF16", [50000], old), "mlp": ("BF16", [50000], other)},
                         {"a.attn.wq.weight": ("BF16", [50000], stepped(old, 0.05, 13)),
                          "mlp": ("BF16", [50000], random.Random(14).randbytes(100000))}, "--block-bytes", 4096)
        self.assertEqual(sum(k["payload_bytes"] for k in out["kinds"]) + out["shared_bytes"], out["wire_bytes"])
        self.assertGreaterEqual(out["shared_bytes"], 160 * out["frames"])
        self.assertEqual(out["bytes_per_changed_element"], out["wire_bytes"] / out["changed_elements"])
        summed = Counter()
        for kind in out["kinds"]:
            for encoding in kind["encodings"]:
                summed[encoding["name"], "blocks"] += encoding["blocks"]
                summed[encoding["name"], "bytes"] += encoding["payload_bytes"]
        for encoding in out["encodings"]:
            self.assertEqual((summed[encoding["name"], "blocks"], summed[encoding["name"], "bytes"]),
                             (encoding["blocks"], encoding["payload_bytes"]), encoding["name"])

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
        self.assertIsNone(out["bytes_per_changed_element"])
        self.assertEqual([(k["kind"], k["payload_bytes"], k["bytes_per_changed_element"]) for k in out["kinds"]],
                         [("other", 0, None)])
        self.assertIn("nothing to send", self.relayctl("delta", "stats", "base", "new").out)
        self.checkpoint("nothing", {})
        self.assertRegex(self.relayctl("delta", "stats", "nothing", "nothing").out, r"dense +0 B")

    def test_text_shows_rate_sizes_bounds_steps_and_exponents(self):
        old = bf16_weights(20000, 9)
        self.stats({"w": ("BF16", [20000], old)}, {"w": ("BF16", [20000], stepped(old, 0.03, 10))})
        text = self.relayctl("delta", "stats", "base", "new").out
        for line in (r"^changed +\d+ +[23]\.\d+ % +of 20 000 elements", r"^sent .*x smaller than dense",
                     r"^order-0 bound .*sent is \d\.\d\d\d of it", r"^given exponents ", r"^encoding +blocks",
                     r"^kind +dense +changed +sent", r"^other +39\.1 KiB +[23]\.\d\d % .* (sparse|class) \d", r"^shared +\d+ B ",
                     r"^step +up +down", r"^1 +\d+ +\d+ +100\.00 %", r"^BF16 old value", r"^2\^-6 "):
            self.assertRegex(text, "(?m)" + line)


if __name__ == "__main__":
    main()
