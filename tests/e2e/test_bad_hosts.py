"""What happens to hosts behind the daemon's back: files cut, replaced or read-only, links cut again and again, a second daemon.

No process dies of it, nobody states a version that it does not hold, and the others are not held up.
"""
import functools
import os
import signal
import socket
import sys

import safetensors_py as st
import toy_model
from byte_proxy import ByteProxy
from fleet import BIN, Fleet, FleetCase, e2e_main, run, until
from version_watch import VersionWatch

REGIONS = {"us": ["root", "us-1"], "eu": ["eu-1"]}


def largest_shard(host):
    return max(host.image.glob("*.safetensors"), key=lambda path: path.stat().st_size)


class BadHosts(FleetCase):
    def fleet(self, plan=None, **options):
        fleet = self.make_fleet(plan or REGIONS, policy="quorum", quorum="0.6", **options)
        self.first = toy_model.make(seed=1, scale=2)
        self.second = toy_model.step(self.first, 0.03, seed=2)
        fleet.put_image("root", self.first)
        return fleet

    def spoiled(self, spoil):
        """One relay is spoiled under its running daemon, then a refit comes: it opens what is there now, becomes a host without a
        version if need be, and is brought to the new one by content. The others do not wait for it."""
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        relay = fleet["us-1"]
        before = set(relay.image.glob("*.safetensors"))
        spoil(relay)
        fleet.publish(fleet.export("second", self.second), "--wait")
        fleet.wait_converged(2, names=["root", "eu-1"])
        fleet.wait_converged(2)
        fleet.assert_images(self.second)
        fleet.assert_all_alive()
        self.assertIn("IMAGE_REPLACED", relay.log_text())
        self.assertEqual(before, set(relay.image.glob("*.safetensors")), "a host keeps its own files")

    def test_a_shard_that_lost_its_last_page(self):
        def spoil(relay):
            shard = largest_shard(relay)
            os.truncate(shard, shard.stat().st_size - 4096)
        self.spoiled(spoil)

    def test_a_shard_that_was_replaced_by_another_file(self):
        def spoil(relay):
            shard = largest_shard(relay)
            other = shard.with_suffix(".new")
            other.write_bytes(shard.read_bytes())
            other.rename(shard)
        self.spoiled(spoil)

    def test_a_shard_that_was_taken_away(self):
        self.spoiled(lambda relay: largest_shard(relay).unlink())

    def test_a_shard_that_was_replaced_on_an_idle_host_is_put_right_without_a_refit(self):
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        relay = fleet["us-1"]
        shard = largest_shard(relay)
        other = bytearray(shard.read_bytes())
        other[-1] ^= 1
        shard.with_suffix(".new").write_bytes(other)
        shard.with_suffix(".new").rename(shard)
        until("the bytes to be right", lambda: st.difference(self.first, st.read_checkpoint(relay.image)) is None)
        fleet.wait_converged(1)
        fleet.assert_images(self.first)

    def test_a_root_whose_shard_was_replaced_says_so_and_publishes_nothing(self):
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        shard = largest_shard(fleet.root)
        other = bytearray(shard.read_bytes())
        other[-1] ^= 1
        shard.with_suffix(".new").write_bytes(other)
        shard.with_suffix(".new").rename(shard)
        fleet.publish(fleet.export("second", self.second), expect=6)
        reason = until("the root to say why", lambda: fleet.root.row().get("state") == "FAILED" and fleet.root.row()["reason"])
        self.assertIn(str(fleet.root.image), reason["text"])
        fleet.wait_converged(1, names=["us-1", "eu-1"])
        fleet.assert_images(self.first, names=["us-1", "eu-1"])
        fleet.assert_all_alive()

    def test_a_shard_that_was_made_immutable_is_read_only_by_name_and_goes_on_when_it_is_not(self):
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        relay = fleet["us-1"]
        shard = largest_shard(relay)
        if run("chattr", "+i", shard).code != 0:
            self.skipTest("no right to make a file immutable here")
        try:
            fleet.publish(fleet.export("second", self.second), "--wait")
            reason = until("us-1 to say why not", lambda: relay.row().get("reason"))
            self.assertEqual("READ_ONLY", reason["code"], reason)
            self.assertIn(shard.name, reason["text"])
            self.assertEqual("1", relay.row()["version"])
        finally:
            run("chattr", "-i", shard)
        fleet.wait_converged(2)
        fleet.assert_images(self.second)

    def test_a_host_whose_marker_cannot_be_written_changes_nothing_and_says_why_until_it_can(self):
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        relay = fleet["us-1"]
        in_the_way = relay.image / "deltarelay.json.tmp"
        in_the_way.mkdir()
        fleet.publish(fleet.export("second", self.second), "--wait")
        reason = until("us-1 to say why not", lambda: relay.row().get("reason"))
        self.assertIn("deltarelay.json", reason["text"])
        self.assertEqual(("FAILED", "1"), (relay.row()["state"], relay.row()["version"]))
        self.assertEqual(("1", "committed"), (relay.marker()["version"], relay.marker()["state"]))
        fleet.assert_images(self.first, names=["us-1"])
        in_the_way.rmdir()
        fleet.wait_converged(2)
        fleet.assert_images(self.second)

    def test_shards_that_were_cut_short_or_taken_away_while_the_daemons_were_down(self):
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        for name in ("us-1", "eu-1"):
            self.assertEqual(0, fleet[name].stop())
        os.truncate(largest_shard(fleet["us-1"]), 4096)
        largest_shard(fleet["eu-1"]).unlink()
        for name in ("us-1", "eu-1"):
            fleet[name].start()
        fleet.wait_converged(1)
        fleet.assert_images(self.first)

    def test_a_root_with_a_shard_cut_short_does_not_start_and_names_it(self):
        fleet = self.fleet()
        shard = largest_shard(fleet.root)
        os.truncate(shard, shard.stat().st_size - 4096)
        ran = run(BIN / "relayd", "--config", fleet.root.config, seconds=20)
        self.assertEqual(3, ran.code, ran)
        self.assertIn(shard.name, ran.err + ran.out)

    def test_a_second_daemon_on_the_same_directories_does_not_start(self):
        fleet = self.fleet()
        fleet.start_all()
        fleet.wait_converged(1)
        relay = fleet["us-1"]
        with socket.create_server((relay.listen[0], 0)) as probe:
            other = "%s:%d" % probe.getsockname()
        config = relay.directory / "second.yaml"
        config.write_text(relay.config.read_text().replace(str(relay.socket), str(relay.directory / "second.sock"))
                          + f"listen: '{other}'\n")
        ran = run(BIN / "relayd", "--config", config, seconds=20)
        self.assertNotEqual(0, ran.code, ran)
        self.assertRegex(ran.out + ran.err, "(?i)lock", ran)
        fleet.assert_images(self.first)
        # A lock dies with its holder: after kill -9 the next start works at once.
        relay.kill()
        relay.start()
        relay.wait_ready()
        fleet.wait_converged(1)

    def test_links_that_are_cut_in_the_middle_of_records_again_and_again(self):
        fleet = self.fleet({"us": ["root"], "eu": ["mid"], "ap": ["leaf"]}, chain=True, block_size="4KiB")
        with fleet.behind(fleet.root, functools.partial(ByteProxy, delay_seconds=0.02)) as proxy:
            watch = VersionWatch(fleet)
            watch.contents.update({1: self.first, 2: self.second})
            with watch:
                fleet.start_all()
                self.cut_while(proxy, fleet, 1)
                fleet.publish(fleet.export("second", self.second))
                self.cut_while(proxy, fleet, 2)
                fleet.wait_converged(2)
            self.assertEqual([], watch.false_words)
            fleet.assert_images(self.second)
            fleet.assert_all_alive()

    def cut_while(self, proxy, fleet, version):
        """Cuts the root's only link five times, each time as soon as something has passed since; then lets it be."""
        for _ in range(5):
            passed = proxy.forwarded_bytes
            until("bytes to pass", lambda: proxy.forwarded_bytes > passed + 20_000 or fleet["mid"].marker().get("version") == str(version))
            proxy.cut()
        fleet.wait_converged(version)


class TermWhileBusy(FleetCase):
    def test_every_daemon_stops_in_time_in_the_middle_of_a_refit_and_goes_on_after_a_restart(self):
        with Fleet({"us": ["root", "us-1"], "eu": ["eu-1", "eu-2"]}) as fleet:
            first = toy_model.make(seed=1, scale=2)
            second = toy_model.step(first, 0.03, seed=2)
            fleet.put_image("root", first)
            fleet.start_all()
            fleet.wait_converged(1)
            fleet["eu-2"].signal(signal.SIGSTOP)
            fleet.publish(fleet.export("second", second))
            until("a relay to apply", lambda: fleet["us-1"].marker().get("state") == "applying")
            for host in fleet.hosts.values():
                self.assertEqual(0, host.stop(), host.name)
            fleet.start_all()
            # The root had not decided, so the refit is presumed aborted, and every host goes back.
            fleet.wait_converged(1, seconds=90)
            fleet.assert_images(first)
            fleet.publish(fleet.export("third", second), "--wait")
            version = fleet.root.get("/v1/status")["committed"]["version"]
            self.assertNotEqual("2", version, "a version is never used twice")
            fleet.wait_converged(version)
            fleet.assert_images(second)
            for host in fleet.hosts.values():
                self.assertIsNone(st.difference(second, st.read_checkpoint(host.image)))


if __name__ == "__main__":
    sys.exit(e2e_main())
