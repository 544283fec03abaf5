"""What a trainer may hand over by mistake. Each is refused with the exit code of the contract and a sentence that names the place;
no image changes, every daemon lives, and the next good export goes through."""
import os
import shutil
import signal
import sys
import threading

import safetensors_py as st
import toy_model
from fleet import Fleet, FleetCase, e2e_main, until

REGIONS = {"us": ["root", "us-1"], "eu": ["eu-1"]}
INVALID, PRECONDITION = 3, 6


class BadExports(FleetCase):
    def fleet(self, tensors=None, **options):
        fleet = self.make_fleet(REGIONS, **options)
        self.tensors = tensors or toy_model.make(seed=1)
        fleet.put_image("root", self.tensors)
        fleet.start_all()
        fleet.wait_converged(1)
        return fleet

    def refused(self, fleet, directory, names, codes=(INVALID,)):
        ran = fleet.publish(directory, "--wait", expect=None)
        self.assertIn(ran.code, codes, ran)
        self.assertRegex(ran.err, r"(?m)^error: .+\. Try: ", ran)
        self.assertRegex(ran.err, names, ran)
        self.unharmed(fleet)

    def unharmed(self, fleet):
        """At v1 and byte-equal; then a good export goes through, whatever number it gets."""
        fleet.wait_converged(1)
        fleet.assert_images(self.tensors)
        fleet.assert_all_alive()
        good = toy_model.step(self.tensors, 0.02, seed=77)
        fleet.publish(fleet.export("good", good), "--wait")
        version = fleet.root.get("/v1/status")["committed"]["version"]
        self.assertGreater(int(version), 1)
        fleet.wait_converged(version)
        fleet.assert_images(good)

    def export(self, fleet, change):
        tensors = dict(toy_model.step(self.tensors, 0.03, seed=2))
        change(tensors)
        return fleet.export("bad", tensors)

    def test_a_directory_that_is_not_there(self):
        fleet = self.fleet()
        self.refused(fleet, fleet.directory / "exports" / "nowhere", r"nowhere")

    def test_a_directory_that_cannot_be_read(self):
        fleet = self.fleet()
        directory = self.export(fleet, lambda tensors: None)
        shard = sorted(directory.glob("*.safetensors"))[1]
        shard.unlink()
        shard.mkdir()  # unreadable for root too, whom no mode keeps out
        self.refused(fleet, directory, shard.name)

    def test_a_missing_tensor(self):
        fleet = self.fleet()
        self.refused(fleet, self.export(fleet, lambda tensors: tensors.pop("lm_head.weight")), r"lm_head\.weight")

    def test_a_tensor_too_many(self):
        fleet = self.fleet()
        extra = st.Tensor("F32", (2,), bytes(8))
        self.refused(fleet, self.export(fleet, lambda tensors: tensors.update({"model.extra": extra})), r"model\.extra")

    def test_every_tensor_under_another_prefix(self):
        fleet = self.fleet()
        renamed = {"actor." + name: tensor for name, tensor in self.tensors.items()}
        self.refused(fleet, fleet.export("bad", renamed), r"actor\.|model\.|lm_head")

    def test_another_shape_of_the_same_size(self):
        fleet = self.fleet()

        def change(tensors):
            old = tensors["model.layers.0.mlp.up.weight"]
            tensors["model.layers.0.mlp.up.weight"] = st.Tensor(old.dtype, tuple(reversed(old.shape)), old.data)
        self.refused(fleet, self.export(fleet, change), r"model\.layers\.0\.mlp\.up\.weight")

    def test_another_dtype_of_the_same_size(self):
        fleet = self.fleet()

        def change(tensors):
            old = tensors["model.norm.weight"]
            tensors["model.norm.weight"] = st.Tensor("F16", old.shape, old.data)
        self.refused(fleet, self.export(fleet, change), r"model\.norm\.weight")

    def test_rows_of_padding(self):
        fleet = self.fleet()

        def change(tensors):
            old = tensors["lm_head.weight"]
            tensors["lm_head.weight"] = st.Tensor(old.dtype, (1024, 512), old.data + os.urandom((1024 - 997) * 1024))
        self.refused(fleet, self.export(fleet, change), r"lm_head\.weight")

    def test_a_shard_cut_off_by_one_byte(self):
        fleet = self.fleet()
        directory = self.export(fleet, lambda tensors: None)
        shard = sorted(directory.glob("*.safetensors"))[-1]
        os.truncate(shard, shard.stat().st_size - 1)
        self.refused(fleet, directory, shard.name)

    def test_a_shard_that_only_the_index_knows(self):
        fleet = self.fleet()
        directory = self.export(fleet, lambda tensors: None)
        shard = sorted(directory.glob("*.safetensors"))[0]
        shard.unlink()
        self.refused(fleet, directory, shard.name)

    def test_a_dry_run_refuses_too_and_counts_without_sending(self):
        fleet = self.fleet()
        bad = self.export(fleet, lambda tensors: tensors.pop("lm_head.weight"))
        ran = fleet.publish(bad, "--dry-run", expect=INVALID)
        self.assertIn("lm_head.weight", ran.err)
        told = fleet.publish(fleet.export("next", toy_model.step(self.tensors, 0.03, seed=3)), "--dry-run", "-o", "json").document
        self.assertTrue(told["dry_run"])
        self.assertAlmostEqual(3.0, told["changed_percent"], delta=0.1)
        self.assertGreater(told["payload_bytes"], 0)
        self.unharmed(fleet)

    def test_a_version_is_never_used_twice(self):
        fleet = self.fleet()
        second = toy_model.step(self.tensors, 0.03, seed=2)
        fleet.publish(fleet.export("second", second), "--version", "5", "--wait")
        fleet.wait_converged(5)
        other = fleet.export("other", toy_model.step(second, 0.03, seed=3))
        for version in ("5", "4", "1"):
            ran = fleet.publish(other, "--version", version, "--wait", expect=PRECONDITION)
            self.assertRegex(ran.err, r"(?m)^error: .*\bv?5\b.*Try: ")
        fleet.wait_converged(5)
        fleet.assert_images(second)
        fleet.assert_all_alive()

    def test_one_refit_at_a_time(self):
        fleet = self.fleet()
        second = toy_model.step(self.tensors, 0.03, seed=2)
        directory = fleet.export("second", second)
        fleet["eu-1"].signal(signal.SIGSTOP)
        try:
            fleet.publish(directory)
            until("the refit to be in flight", lambda: (fleet.root.get("/v1/status") or {}).get("in_flight"))
            self.assertIn("v2", fleet.publish(directory, expect=PRECONDITION).err)
        finally:
            fleet["eu-1"].signal(signal.SIGCONT)
        fleet.wait_converged(2)
        fleet.assert_images(second)

    def while_written(self, spoil):
        """Publishes a directory in which `spoil(file)` is done over and over, until the command has ended."""
        fleet = self.fleet(toy_model.make(seed=1, scale=8))
        directory = self.export(fleet, lambda tensors: None)
        shard = max(directory.glob("*.safetensors"), key=lambda path: path.stat().st_size)
        stop = threading.Event()

        def write():
            with open(shard, "r+b") as file:
                while not stop.is_set():
                    spoil(file)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.refused_while(fleet, directory)
        finally:
            stop.set()
            writer.join()
        self.unharmed(fleet)

    def refused_while(self, fleet, directory):
        ran = fleet.publish(directory, "--wait", expect=None)
        self.assertIn(ran.code, (1, INVALID), ran)
        self.assertRegex(ran.err, r"(?m)^error: .+\. Try: ", ran)

    def test_a_directory_that_changes_while_it_is_read(self):
        def spoil(file):
            file.seek(-4096, os.SEEK_END)
            file.write(os.urandom(4096))
            file.flush()
        self.while_written(spoil)

    def test_a_shard_that_is_saved_over_while_it_is_read(self):
        state = {}

        def spoil(file):
            if not state:
                file.seek(0)
                state["content"] = file.read()
            file.truncate(1 << 20)  # pages vanish under the root's mapping
            file.seek(0)
            file.write(state["content"])
            file.flush()
        self.while_written(spoil)


class OddButGood(FleetCase):
    def refit(self, first, second, **cut):
        with Fleet(REGIONS) as fleet:
            fleet.put_image("root", first)
            fleet.start_all()
            fleet.wait_converged(1)
            fleet.publish(fleet.export("second", second, **cut), "--wait")
            fleet.wait_converged(2)
            fleet.assert_images(second)
            return {row["version"]: row for row in fleet.root.get("/v1/versions")["versions"]}["2"]

    def test_nan_payloads_infinities_and_both_zeros_arrive_bit_for_bit(self):
        first, second = {}, {}
        for dtype, patterns in toy_model.special_bits().items():
            count = 300 * len(patterns)
            for turned, tensors in ((0, first), (5, second)):
                data = b"".join((patterns[turned:] + patterns[:turned]) * 300)
                tensors[f"special.{dtype}"] = st.Tensor(dtype, (count,), data)
        first["special.one"] = second["special.one"] = st.Tensor("F32", (1,), bytes.fromhex("0100807f"))
        self.refit(first, second)

    def test_all_bytes_of_the_data_at_odd_addresses(self):
        first = toy_model.make(seed=1)
        self.refit(first, toy_model.step(first, 0.03, seed=2), shards=5, pad_to=1)

    def test_other_shards_without_a_change_send_next_to_nothing(self):
        first = toy_model.make(seed=1)
        row = self.refit(first, first, shards=5)
        self.assertEqual(0, row["changed_percent"])
        self.assertLess(row["payload_bytes"], 64 * 1024)

    def test_a_stale_shard_beside_the_index_does_not_count(self):
        first = toy_model.make(seed=1)
        second = toy_model.step(first, 0.03, seed=2)
        with Fleet(REGIONS) as fleet:
            fleet.put_image("root", first)
            fleet.start_all()
            fleet.wait_converged(1)
            directory = fleet.export("second", second)
            stale = fleet.export("stale", toy_model.step(first, 0.5, seed=9), shards=1)
            shutil.copy(stale / "model.safetensors", directory / "model-00004-of-00004.safetensors")
            fleet.publish(directory, "--wait")
            fleet.wait_converged(2)
            fleet.assert_images(second)


if __name__ == "__main__":
    sys.exit(e2e_main())
