"""relayctl checkpoint: exit codes, what diff finds, and that a checkpoint is its tensors and not its files."""
import os
import struct
import subprocess

from relayctl_case import RELAYCTL, RUN_SECONDS_MAX, RelayctlCase, Run, bf16_weights, main, tree_bytes


def flipped(data, bit):
    out = bytearray(data)
    out[bit // 8] ^= 1 << (bit % 8)
    return bytes(out)


SPECIALS = struct.pack("<8H", 0x7F81, 0xFFC1, 0x7FFF, 0x7F80, 0xFF80, 0x8000, 0x0000, 0x0001)


class CheckpointTest(RelayctlCase):
    def tensors(self):
        return {
            "a.weight": ("BF16", [40, 25], bf16_weights(1000, 1)),
            "b.scale": ("F32", [], struct.pack("<f", 0.5)),
            "c.empty": ("BF16", [0, 25], b""),
            "d.steps": ("I64", [3], struct.pack("<3q", 1, -2, 1 << 40)),
            "e.odd": ("F8_E4M3", [7], bytes(range(7))),
            "f.special": ("BF16", [8], SPECIALS),
        }

    def answer(self, *args, expect):
        """For diff: exit 1 is an answer and no error, so nothing is said on stderr."""
        done = subprocess.run([RELAYCTL, *map(str, args)], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=RUN_SECONDS_MAX, env={"PATH": os.environ["PATH"]})
        run = Run(done)
        self.assertEqual((run.code, run.err), (expect, ""), f"relayctl {args}\nstdout: {run.out}")
        return run

    def diff(self, a, b, *options, expect):
        run = self.answer("checkpoint", "diff", a, b, "-o", "json", *options, expect=expect)
        self.assertEqual(run.json["schema"], "deltarelay.checkpoint.diff/1")
        self.assertEqual(run.json["same"], expect == 0)
        return run.json

    def test_make_step_diff_info_agree(self):
        made = self.relayctl("checkpoint", "make", "v1", "--size", "2MiB", "--seed", 1, "-o", "json").json
        self.assertEqual(made["schema"], "deltarelay.checkpoint.make/1")
        step = self.relayctl(
            "checkpoint", "step", "v2", "--from", "v1", "--change", "3%", "--seed", 2, "-o", "json").json
        self.assertEqual(step["masters"], "kept")
        self.assertAlmostEqual(step["change"], 0.03, delta=0.0006)
        diff = self.diff("v1", "v2", expect=1)
        self.assertEqual(diff["changed_elements"], step["changed_elements"])
        self.assertEqual(diff["elements"], step["elements"])
        self.assertEqual(diff["files"], [])
        one, two = (self.relayctl("checkpoint", "info", v, "--digest", "-o", "json").json for v in ("v1", "v2"))
        self.assertEqual(one["layout_digest"], two["layout_digest"])
        self.assertNotEqual(one["content_digest"], two["content_digest"])
        self.assertEqual(one["tensor_bytes"], made["tensor_bytes"])
        self.assertEqual(sum(t["tensor_bytes"] for t in one["tensors"]), made["tensor_bytes"])

    def test_the_same_seed_makes_the_same_files_on_any_number_of_threads(self):
        for name, threads in (("a", 1), ("b", 3)):
            self.relayctl("checkpoint", "make", name, "--size", "1MiB", "--seed", 4, "--threads", threads)
        self.assertEqual(tree_bytes(self.dir / "a"), tree_bytes(self.dir / "b"))
        self.relayctl("checkpoint", "make", "c", "--size", "1MiB", "--seed", 5)
        self.assertNotEqual(tree_bytes(self.dir / "a"), tree_bytes(self.dir / "c"))

    def test_resharded_checkpoints_compare_equal(self):
        self.checkpoint("one", self.tensors(), {"config.json": b"{}"})
        for shards in (2, 3, 6):
            name = f"shards{shards}"
            self.checkpoint(name, dict(reversed(self.tensors().items())), {"config.json": b"{}"}, shards=shards)
            self.diff("one", name, expect=0)
            info = [self.relayctl("checkpoint", "info", v, "--digest", "-o", "json").json for v in ("one", name)]
            self.assertEqual(info[0]["content_digest"], info[1]["content_digest"])

    def test_step_with_no_change_reshards_and_keeps_every_bit(self):
        self.checkpoint("base", self.tensors(), {"config.json": b"{}", "tokenizer.json": b"[1]"})
        self.relayctl("checkpoint", "step", "re", "--from", "base", "--change", "0%", "--seed", 1, "--shards", 4)
        self.assertEqual(len(list((self.dir / "re").glob("*.safetensors"))), 4)
        self.diff("base", "re", expect=0)

    def test_a_single_flipped_bit_is_found_where_it_is(self):
        base = self.tensors()
        self.checkpoint("base", base)
        for name, bit in (("a.weight", 0), ("a.weight", 15999), ("a.weight", 7777), ("b.scale", 31), ("d.steps", 100),
                          ("e.odd", 55), ("f.special", 3), ("f.special", 95)):
            dtype, shape, data = base[name]
            other = self.checkpoint(f"{name}-{bit}", {**base, name: (dtype, shape, flipped(data, bit))}, shards=2)
            diff = self.diff("base", other.name, expect=1)
            width = {"BF16": 2, "F32": 4, "I64": 8, "F8_E4M3": 1}[dtype]
            self.assertEqual(diff["tensors"], [{
                "name": name, "difference": "content", "first_byte": bit // 8, "changed_elements": 1,
                "elements": len(data) // width}])

    def test_signed_zeros_and_nan_payloads_are_bits(self):
        zero, minus = struct.pack("<2H", 0, 0x7FC0), struct.pack("<2H", 0x8000, 0x7FC0)
        self.checkpoint("zero", {"w": ("BF16", [2], zero)})
        self.checkpoint("minus", {"w": ("BF16", [2], minus)})
        self.checkpoint("nan", {"w": ("BF16", [2], struct.pack("<2H", 0, 0x7FC1))})
        self.diff("zero", "zero", expect=0)  # NaN equals itself here
        self.assertEqual(self.diff("zero", "minus", expect=1)["tensors"][0]["first_byte"], 1)
        self.assertEqual(self.diff("zero", "nan", expect=1)["tensors"][0]["first_byte"], 2)

    def test_names_shapes_and_dtypes_count(self):
        base = self.tensors()
        self.checkpoint("base", base)
        odd = {**base, "a.weight": ("BF16", [25, 40], base["a.weight"][2]), "z": ("U8", [1], b"x")}
        del odd["b.scale"]
        self.checkpoint("odd", odd)
        found = {t["name"]: t["difference"] for t in self.diff("base", "odd", expect=1)["tensors"]}
        self.assertEqual(found, {"a.weight": "declared_otherwise", "b.scale": "only_in_a", "z": "only_in_b"})

    def test_companions_count_unless_told_otherwise(self):
        self.checkpoint("a", self.tensors(), {"config.json": b"{}", "x.txt": b"1"})
        self.checkpoint("b", self.tensors(), {"config.json": b"{ }", "y.txt": b"1"})
        found = {f["name"]: f["difference"] for f in self.diff("a", "b", expect=1)["files"]}
        self.assertEqual(found, {"config.json": "content", "x.txt": "only_in_a", "y.txt": "only_in_b"})
        self.diff("a", "b", "--tensors-only", expect=0)

    def test_a_real_checkpoint_can_be_stepped_and_its_special_values_survive(self):
        weights = bf16_weights(20000, 3)
        self.checkpoint("base", {**self.tensors(), "w": ("BF16", [20000], weights)})
        step = self.relayctl("checkpoint", "step", "next", "--from", "base", "--change", "5%", "--seed", 1, "-o", "json")
        self.assertEqual(step.json["masters"], "drawn")
        changed = {t["name"] for t in self.diff("base", "next", expect=1)["tensors"]}
        self.assertIn("w", changed)
        self.assertFalse(changed & {"c.empty", "d.steps", "e.odd"}, changed)
        data = b"".join(p.read_bytes() for p in (self.dir / "next").glob("*.safetensors"))
        self.assertIn(SPECIALS[:14], data)  # all but the subnormal, which is a weight like any other

    def test_exit_codes(self):
        base = self.checkpoint("base", self.tensors())
        make = ("checkpoint", "make")
        self.relayctl(*make, "x", "--size", "1MiB", expect=2)  # no seed
        self.relayctl(*make, "x", "--size", "1", "--seed", 1, expect=2)
        self.relayctl(*make, "x", "--size", "many", "--seed", 1, expect=2)
        self.relayctl(*make, "x", "--size", "1MiB", "--seed", 1, "--dtype", "f8", expect=2)
        self.relayctl(*make, "x", "--size", "64KiB", "--seed", 1, "--shards", 9999, expect=2)
        self.relayctl(*make, "base", "--size", "1MiB", "--seed", 1, expect=6)
        self.relayctl(*make, "no/such/place", "--size", "1MiB", "--seed", 1, expect=1)
        step = ("checkpoint", "step")
        self.relayctl(*step, "x", "--from", "none", "--change", "1%", "--seed", 1, expect=3)
        self.relayctl(*step, "base", "--from", "base", "--change", "1%", "--seed", 1, expect=6)
        self.relayctl(*step, "x", "--from", "base", "--change", "101%", "--seed", 1, expect=2)
        run = self.relayctl(*step, "x", "--from", "base", "--change", "100%", "--seed", 1, expect=2)
        self.assertIn("elements cannot change", run.err)
        for args in (("diff", "base", "none"), ("diff", "none", "base"), ("info", "none")):
            self.relayctl("checkpoint", *args, expect=3)
        self.relayctl("checkpoint", "diff", "base", expect=2)
        self.relayctl("checkpoint", expect=2)
        shard = base / "model.safetensors"
        shard.write_bytes(shard.read_bytes()[:-1])
        run = self.relayctl("checkpoint", "info", "base", expect=3)
        self.assertIn("model.safetensors", run.err)
        self.relayctl("checkpoint", "diff", "base", "base", expect=3)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["base"])

    def test_a_long_list_of_differences_is_cut_in_text_and_whole_when_wide(self):
        many = {f"t{i:03}": ("BF16", [50], bf16_weights(50, i)) for i in range(60)}
        self.checkpoint("a", many)
        self.checkpoint("b", {n: (d, s, flipped(b, 0)) for n, (d, s, b) in many.items()})
        text = self.answer("checkpoint", "diff", "a", "b", expect=1).out
        self.assertIn("and 40 more tensors", text)
        self.assertNotIn("t059", text)
        self.assertIn("t059", self.answer("checkpoint", "diff", "a", "b", "-o", "wide", expect=1).out)


if __name__ == "__main__":
    main()
