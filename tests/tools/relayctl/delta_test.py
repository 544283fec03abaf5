"""relayctl delta encode, apply and info: images become the new checkpoint bit for bit, or nothing of them changes."""
import fcntl
import json
import os
import struct

from relayctl_case import RelayctlCase, bf16_weights, main, stepped, tree_bytes

BLOCK = 4096


class DeltaCase(RelayctlCase):
    def model(self, seed=1, elements=20000):
        return {
            "embed.weight": ("BF16", [elements], bf16_weights(elements, seed)),
            "norm.weight": ("F32", [64], struct.pack("<64f", *[1.0] * 64)),
            "special": ("F16", [4], bytes.fromhex("007e01fe008000fc")),  # NaN payloads, -0.0, -inf
            "step": ("I64", [], struct.pack("<q", 7)),
            "zero": ("F32", [0, 3], b""),
        }

    def trained(self, model, seed=2, change=0.03):
        name = "embed.weight"
        dtype, shape, data = model[name]
        special = ("F16", [4], bytes.fromhex("ff7f00fe000000fc"))
        return {**model, name: (dtype, shape, stepped(data, change, seed)),
                "step": ("I64", [], struct.pack("<q", 8)), "special": special}

    def pair(self, companions=True):
        """base/ and new/, and the delta between them in step.delta."""
        model = self.model()
        files = {"config.json": b'{"a": 1}', "tokenizer.json": b"[1, 2]"} if companions else {}
        base = self.checkpoint("base", model, files)
        new = self.checkpoint("new", self.trained(model), {**files, "config.json": b'{"a": 2}'} if companions else {})
        return base, new

    def encode(self, *options, out="step.delta", expect=0):
        return self.relayctl("--output", "json", "delta", "encode", "base", "new", "-o", out, "--block-bytes", BLOCK,
                             *options, expect=expect)

    def apply(self, image, *options, delta="step.delta", expect=0):
        return self.relayctl("delta", "apply", delta, image, "-o", "json", *options, expect=expect)


class RoundTrip(DeltaCase):
    def test_the_image_becomes_the_new_checkpoint_bit_for_bit(self):
        base, new = self.pair()
        encoded = self.encode().json
        self.assertLess(encoded["file_bytes"], encoded["image_bytes"] / 10)
        image = self.copy(base, "image")
        applied = self.apply("image").json
        self.assertEqual(tree_bytes(image), tree_bytes(new))
        self.assertEqual(applied["applied_blocks"], encoded["changed_blocks"])
        self.assertEqual(applied["written_files"], 1)
        marker = json.loads((image / "deltarelay.json").read_text())
        self.assertEqual((marker["state"], marker["version"], marker["digest"]),
                         ("committed", "1", encoded["image_digest"]))
        self.assertEqual(marker["changed_tensors"], ["embed.weight", "special", "step"])
        self.assertEqual([p.name for p in image.iterdir() if "slot" in p.name], [])

    def test_how_tensors_are_cut_into_files_does_not_matter(self):
        base, new = self.pair(companions=False)
        self.encode()
        image = self.checkpoint("image", self.model(), shards=3)
        self.apply("image")
        expected = self.checkpoint("expected", self.trained(self.model()), shards=3)
        self.assertEqual(tree_bytes(image), tree_bytes(expected))

    def test_applying_twice_says_already_and_changes_nothing(self):
        base, new = self.pair()
        self.encode()
        image = self.copy(base, "image")
        self.assertFalse(self.apply("image").json["already"])
        before = tree_bytes(image)
        again = self.apply("image").json
        self.assertEqual((again["already"], again["applied_blocks"]), (True, 0))
        self.assertEqual(tree_bytes(image), before)
        self.assertIn("already at version 1", self.relayctl("delta", "apply", "step.delta", "image").out)

    def test_the_new_checkpoint_itself_is_already_there(self):
        self.pair()
        self.encode()
        self.assertTrue(self.apply("new").json["already"])

    def test_versions_go_on_from_what_the_base_states(self):
        base, new = self.pair()
        self.encode("--base-version", 41, "--version", 42)
        self.copy(base, "image")
        self.apply("image")
        later = self.checkpoint("later", self.trained(self.trained(self.model()), seed=9),
                                {"config.json": b'{"a": 2}', "tokenizer.json": b"[1, 2]"})
        run = self.relayctl("--output", "json", "delta", "encode", "image", "later", "-o", "2.delta")
        self.assertEqual((run.json["base_version"], run.json["version"]), ("42", "43"))
        self.apply("image", delta="2.delta")
        self.assertEqual(tree_bytes(self.dir / "image"), tree_bytes(later))

    def test_equal_checkpoints_give_a_delta_without_frames(self):
        self.pair()
        run = self.relayctl("--output", "json", "delta", "encode", "new", "new", "-o", "none.delta")
        self.assertEqual((run.json["frames"], run.json["changed_blocks"]), (0, 0))
        self.assertTrue(self.apply("new", delta="none.delta").json["already"])

    def test_one_thread_always_writes_the_same_bytes(self):
        self.pair()
        self.encode("--threads", 1, out="1.delta")
        self.encode("--threads", 1, out="2.delta")
        self.assertEqual((self.dir / "1.delta").read_bytes(), (self.dir / "2.delta").read_bytes())

    def test_only_changed_small_files_travel_and_the_others_must_be_there(self):
        base, new = self.pair()
        files = {f["name"]: f["included"] for f in self.encode().json["files"]}
        self.assertEqual(files, {"config.json": True, "tokenizer.json": False})
        image = self.copy(base, "image")
        (image / "tokenizer.json").write_bytes(b"another")
        before = tree_bytes(image)
        run = self.apply("image", expect=6)
        self.assertIn("tokenizer.json", run.err)
        self.assertEqual(tree_bytes(image), before)

    def test_a_lost_small_file_alone_is_put_back(self):
        base, new = self.pair()
        self.encode()
        image = self.copy(new, "image")
        (image / "config.json").unlink()
        self.assertEqual(self.apply("image").json["written_files"], 1)
        self.assertEqual(tree_bytes(image), tree_bytes(new))


class Refused(DeltaCase):
    def unchanged(self, image, expect, *options, says=None):
        before = tree_bytes(image)
        run = self.apply(image.name, *options, expect=expect)
        self.assertEqual(tree_bytes(image), before)
        if says:
            self.assertIn(says, run.err)
        return run

    def test_another_base_is_refused_with_what_it_is(self):
        self.pair()
        self.encode("--base-version", 3, "--version", 4)
        other = self.checkpoint("other", self.model(seed=5))
        run = self.unchanged(other, 6, says="base v3")
        self.assertIn("Try: ", run.err)

    def test_another_version_that_differs_only_where_the_delta_writes_is_refused(self):
        base, new = self.pair(companions=False)
        self.encode()
        other = self.checkpoint("other", self.trained(self.model(), seed=77))
        self.unchanged(other, 6, says="is at neither of them")

    def test_other_tensors_are_refused(self):
        self.pair()
        self.encode()
        other = self.checkpoint("other", {**self.model(), "more": ("U8", [1], b"x")})
        self.unchanged(other, 6, says="other tensors")

    def test_encode_names_each_tensor_that_does_not_agree(self):
        model = self.model()
        self.checkpoint("base", model)
        changed = dict(model)
        changed["norm.weight"] = ("I32", [64], bytes(256))
        changed["embed.weight"] = ("BF16", [2, 10000], model["embed.weight"][2])
        changed["extra"] = ("U8", [1], b"x")
        del changed["step"]
        self.checkpoint("new", changed)
        run = self.encode(expect=3)
        for sentence in ('"norm.weight": dtype F32 here, I32 there', '"embed.weight": shape [20000] here, [2,10000]',
                         'missing: "step"', 'unexpected: "extra"'):
            self.assertIn(sentence, run.err)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["base", "new"])
        self.relayctl("delta", "stats", "base", "new", expect=3)

    def test_an_image_in_use_is_refused(self):
        base, new = self.pair()
        self.encode()
        image = self.copy(base, "image")
        with open(image / ".deltarelay.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.unchanged(image, 6, says="another process holds the lock")

    def test_engines_that_read_are_waited_for_until_the_deadline(self):
        base, new = self.pair()
        self.encode()
        image = self.copy(base, "image")
        with open(image / "deltarelay.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            self.unchanged(image, 5, "--timeout", "50ms", says="engine")
        self.apply("image", "--timeout", "50ms")
        self.assertEqual(tree_bytes(image), tree_bytes(new))

    def test_links_are_not_written_through(self):
        base, new = self.pair()
        self.encode()
        for link in (os.link, os.symlink):
            image = self.dir / f"image-{link.__name__}"
            image.mkdir()
            link(base / "model.safetensors", image / "model.safetensors")
            before = (base / "model.safetensors").read_bytes()
            self.unchanged(image, 6, says="link")
            self.assertEqual((base / "model.safetensors").read_bytes(), before)

    def test_what_is_no_image_is_refused(self):
        base, new = self.pair()
        self.encode()
        (self.dir / "empty").mkdir()
        self.apply("empty", expect=3)
        self.apply("absent", expect=3)
        self.apply("base/model.safetensors", expect=3)
        self.apply("base", delta="absent.delta", expect=1)
        self.apply("base", delta="base/model.safetensors", expect=3)

    def test_wrong_arguments_are_usage_errors(self):
        self.pair()
        self.encode("--version", 3, "--base-version", 3, expect=2)
        self.encode("--mesh-id", "zz", expect=2)
        self.relayctl("delta", "encode", "base", "new", "-o", "x.delta", "--block-bytes", 5000, expect=2)
        self.relayctl("delta", "encode", "base", "new", expect=2)
        self.encode(out="base", expect=2)
        self.encode(out="new/model.safetensors", expect=2)
        self.relayctl("delta", "encode", "base", "new", "-o", "absent/x.delta", expect=1)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["base", "new"])

    def test_an_image_half_way_is_finished_and_one_with_a_foreign_block_is_not_touched(self):
        base, new = self.pair(companions=False)
        blocks = self.encode().json["changed_blocks"]
        whole_base, whole_new = (d / "model.safetensors" for d in (base, new))
        old, wanted = whole_base.read_bytes(), whole_new.read_bytes()
        header = 8 + struct.unpack("<Q", old[:8])[0]
        half = header + 5 * BLOCK  # "embed.weight" is the first tensor in file and table
        image = self.copy(base, "image")
        (image / "model.safetensors").write_bytes(wanted[:half] + old[half:])
        run = self.apply("image").json
        self.assertEqual((run["already_blocks"], run["applied_blocks"]), (5, blocks - 5))
        self.assertEqual((image / "model.safetensors").read_bytes(), wanted)

        torn = bytearray(wanted[:half] + old[half:])
        torn[half + 2 * BLOCK + 100] ^= 1
        (image / "model.safetensors").write_bytes(torn)
        self.unchanged(image, 6, says="block 7 of \"embed.weight\"")


class Signed(DeltaCase):
    def test_signatures_hold_for_their_key_alone(self):
        base, new = self.pair()
        self.relayctl("cert", "init-ca", "ca", "--mesh", "prod")
        self.relayctl("cert", "init-ca", "other", "--mesh", "prod")
        mesh = "00112233445566778899aabbccddeeff"
        run = self.encode("--key", "ca/content.key", "--mesh-id", mesh, "--epoch", 9)
        self.assertEqual((run.json["signed"], run.json["mesh_id"], run.json["epoch"]), (True, mesh, "9"))
        image = self.copy(base, "image")
        before = tree_bytes(image)
        run = self.apply("image", "--verify-key", "other/content.pub", expect=3)
        self.assertIn("signature", run.err)
        self.assertEqual(tree_bytes(image), before)
        self.relayctl("delta", "info", "step.delta", "--verify-key", "other/content.pub", expect=3)
        self.assertTrue(self.apply("image", "--verify-key", "ca/content.pub").json["verified"])
        self.assertEqual(tree_bytes(image), tree_bytes(new))

    def test_unsigned_files_are_refused_where_a_key_is_given_and_signed_ones_warn_where_none_is(self):
        base, new = self.pair()
        self.relayctl("cert", "init-ca", "ca", "--mesh", "prod")
        self.encode()
        image = self.copy(base, "image")
        before = tree_bytes(image)
        self.apply("image", "--verify-key", "ca/content.pub", expect=3)
        self.assertEqual(tree_bytes(image), before)
        self.encode("--key", "ca/content.key", out="signed.delta")
        self.assertIn("warning: the signatures", self.apply("image", delta="signed.delta").err)

    def test_bad_keys_are_named(self):
        base, new = self.pair()
        (self.dir / "junk").write_bytes(b"junk")
        self.assertIn("junk", self.encode("--key", "junk", expect=3).err)
        self.encode()
        self.assertIn("junk", self.apply("base", "--verify-key", "junk", expect=3).err)


class Info(DeltaCase):
    def test_info_shows_what_encode_reported(self):
        self.pair()
        encoded = self.encode("--base-version", 1, "--version", 2).json
        info = self.relayctl("delta", "info", "step.delta", "-o", "json").json
        for key in ("version", "base_version", "base_digest", "image_digest", "frames", "changed_blocks", "encodings",
                    "files", "file_bytes", "changed_elements", "block_bytes", "image_bytes"):
            self.assertEqual(info[key], encoded[key], key)
        self.assertEqual(sum(e["blocks"] for e in info["encodings"]), info["changed_blocks"])
        self.assertEqual(sum(e["payload_bytes"] for e in info["encodings"]) + info["overhead_bytes"],
                         info["frame_payload_bytes"])
        self.assertEqual(info["file_bytes"], (self.dir / "step.delta").stat().st_size)
        text = self.relayctl("delta", "info", "step.delta").out
        self.assertRegex(text, r"(?m)^file +step\.delta, .*unsigned$")
        self.assertRegex(text, r"(?m)^base +v1 ")
        self.assertRegex(text, r"(?m)^carries +config\.json, 8 B$")

    def test_digests_are_those_of_xxhsum(self):
        """The image of one block of one tensor: its digest is XXH3-128 of that block's own digest."""
        try:
            import xxhash
        except ImportError:
            self.skipTest("python3-xxhash is not installed")
        data = bytes(range(256)) * 16
        self.checkpoint("base", {"a": ("U8", [4096], data)})
        self.checkpoint("new", {"a": ("U8", [4096], data[::-1])})
        encoded = self.encode().json
        for key, content in (("base_digest", data), ("image_digest", data[::-1])):
            self.assertEqual(encoded[key], xxhash.xxh3_128(xxhash.xxh3_128(content).digest()).hexdigest())


if __name__ == "__main__":
    main()
