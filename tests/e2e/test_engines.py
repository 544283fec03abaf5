"""Engines that read the image hold a shared flock on deltarelay.lock: nothing is written under it, the host says for whom it waits,
and goes on by itself when the engine lets go.
"""
import contextlib
import fcntl
import os
import sys

import toy_model
from fleet import FleetCase, e2e_main, until

REGIONS = {"us": ["root", "us-1"], "eu": ["eu-1"]}


@contextlib.contextmanager
def reading(host):
    """An engine on this host: this very process."""
    with open(host.image / "deltarelay.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def content(host):
    return {path.name: path.read_bytes() for path in host.image.iterdir()}


class Engines(FleetCase):
    def converged_fleet(self):
        fleet = self.make_fleet(REGIONS, policy="quorum", quorum="0.6")
        self.first = toy_model.make(seed=1, scale=2)
        self.second = toy_model.step(self.first, 0.03, seed=2)
        fleet.put_image("root", self.first)
        fleet.start_all()
        fleet.wait_converged(1)
        return fleet

    def assert_waits(self, fleet, host, what):
        def told():
            reason = fleet.root.row(host.name).get("reason", {})
            return reason if reason.get("code") == "ENGINE_READS" else None
        reason = until(f"{host.name} to say for whom it waits", told)
        self.assertRegex(reason["text"], what + r" waits since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ for .*" + f"pid {os.getpid()} ")
        checks = [check["code"] for check in fleet.root.get("/v1/status")["health"]["checks"]]
        self.assertIn("ENGINE_READS", checks)

    def test_a_refit_waits_for_an_engine_and_changes_no_file_under_it(self):
        fleet = self.converged_fleet()
        relay = fleet["us-1"]
        with reading(relay):
            before = content(relay)
            fleet.publish(fleet.export("second", self.second, companions={"config.json": '{"step": 2}\n'}), "--wait")
            fleet.wait_converged(2, names=["root", "eu-1"])
            self.assert_waits(fleet, relay, "the refit to v2")
            self.assertEqual(before, content(relay))
        fleet.wait_converged(2)
        fleet.assert_images(self.second)
        self.assertEqual('{"step": 2}\n', (relay.image / "config.json").read_text())
        self.assertNotIn("reason", fleet.root.row("us-1"))

    def test_a_refit_that_is_aborted_while_it_waits_has_changed_nothing(self):
        fleet = self.converged_fleet()
        relay = fleet["us-1"]
        with reading(relay):
            before = content(relay)
            fleet.publish(fleet.export("second", self.second), "--policy", "all")
            self.assert_waits(fleet, relay, "the refit to v2")
            fleet.root.ctl("abort", "2")
            fleet.wait_converged(1)
            self.assertEqual(before, content(relay))
            self.assertNotIn("reason", fleet.root.row("us-1"))

    def test_block_sync_waits_for_an_engine(self):
        fleet = self.converged_fleet()
        relay = fleet["us-1"]
        self.assertEqual(0, relay.stop())
        fleet.publish(fleet.export("second", self.second), "--wait")
        fleet.wait_converged(2, names=["root", "eu-1"])
        shard = max(relay.image.glob("*.safetensors"), key=lambda path: path.stat().st_size)
        damaged = bytearray(shard.read_bytes())
        damaged[-1] ^= 1
        shard.write_bytes(damaged)
        with reading(relay):
            before = content(relay)
            relay.start()
            relay.wait_ready()
            self.assert_waits(fleet, relay, "the block sync")
            # Only the word that there is no version any more is written: an engine that starts now must not trust the old one.
            after = content(relay)
            self.assertEqual({**before, "deltarelay.json": None}, {**after, "deltarelay.json": None})
        fleet.wait_converged(2)
        fleet.assert_images(self.second)

    def test_a_start_that_has_a_shard_to_make_again_waits_for_an_engine(self):
        fleet = self.converged_fleet()
        relay = fleet["us-1"]
        self.assertEqual(0, relay.stop())
        shard = max(relay.image.glob("*.safetensors"), key=lambda path: path.stat().st_size)
        os.truncate(shard, 4096)
        with reading(relay):
            before = content(relay)
            relay.start()
            relay.wait_ready()
            until("us-1 to say for whom it waits", lambda: relay.row().get("reason", {}).get("code") == "ENGINE_READS")
            self.assertEqual(before, content(relay))
        fleet.wait_converged(1)
        fleet.assert_images(self.first)


if __name__ == "__main__":
    sys.exit(e2e_main())
