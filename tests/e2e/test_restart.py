"""kill -9 in the middle of a refit, wrong or damaged images at the start, hosts that hang: the fleet ends byte-equal, and at no time
does a host state a version that it does not hold.

A refit is held in the middle by stopping one host (SIGSTOP): by the policy `all` nothing commits before that host has prepared.
"""
import signal
import sys

import safetensors_py as st
import toy_model
import wire
from fleet import FleetCase, e2e_main, until
from version_watch import VersionWatch

REGIONS = {"us": ["root", "us-1"], "eu": ["eu-1", "eu-2"]}


class Scene(FleetCase):
    def fleet(self, plan=None, **options):
        fleet = self.make_fleet(plan or REGIONS, **options)
        self.contents = {1: toy_model.make(seed=1, scale=2)}
        fleet.put_image("root", self.contents[1])
        return fleet

    def converged_fleet(self, plan=None, **options):
        fleet = self.fleet(plan, **options)
        fleet.start_all()
        fleet.wait_converged(1)
        return fleet

    def step(self, fleet, version, base=None):
        self.contents[version] = toy_model.step(self.contents[base or version - 1], 0.03, seed=version)
        return fleet.export(f"v{version}", self.contents[version])

    def hold_refit(self, fleet, held):
        """Publishes v2 and returns when it cannot end, because `held` is stopped."""
        directory = self.step(fleet, 2)
        fleet[held].signal(signal.SIGSTOP)
        fleet.publish(directory)
        until("v2 to be in flight", lambda: (fleet.root.get("/v1/status") or {}).get("in_flight"))

    def settle(self, fleet, version):
        fleet.wait_converged(version, seconds=90)
        fleet.assert_images(self.contents[version])
        fleet.assert_all_alive()


class Killed(Scene):
    def kill_relay(self, when):
        fleet = self.converged_fleet()
        watch = VersionWatch(fleet)
        watch.contents.update(self.contents)
        with watch:
            self.hold_refit(fleet, held="eu-2")
            watch.contents.update(self.contents)
            victim = fleet["us-1"]
            until("the victim to be in the state", lambda: when(victim))
            victim.kill()
            # Dead or alive, the marker is what an engine reads.
            self.assertEqual(("applying", "1", "2"), tuple(victim.marker().get(key) for key in ("state", "version", "target")))
            victim.start()
            victim.wait_ready()
            fleet["eu-2"].signal(signal.SIGCONT)
            fleet.wait_converged(2, seconds=90)
        self.assertEqual([], watch.false_words)
        self.assertGreater(watch.judged, 0)
        self.settle(fleet, 2)

    def test_a_relay_that_is_killed_while_it_applies_finishes_the_refit(self):
        self.kill_relay(lambda victim: victim.marker().get("state") == "applying")

    def test_a_relay_that_is_killed_when_it_is_prepared_finishes_the_refit(self):
        self.kill_relay(lambda victim: victim.row().get("state") == "PREPARED")

    def test_a_record_of_the_log_that_the_root_did_not_sign_is_received_again(self):
        fleet = self.converged_fleet(block_size="4KiB")
        self.hold_refit(fleet, held="eu-2")
        victim = fleet["us-1"]
        until("the victim to be prepared", lambda: victim.row().get("state") == "PREPARED")
        victim.kill()
        segment, = (victim.state / "log").glob("v2-*.seg")
        data, starts, at = segment.read_bytes(), [], 0
        while at < len(data):
            starts.append(at)
            _, at = wire.unpack(data, at)
        self.assertGreater(len(starts), 3)
        with open(segment, "r+b") as file:  # a bit of END's signature, which its SHA-256 does not cover
            file.seek(starts[-1] + wire.HEADER.size)
            file.write(bytes([data[starts[-1] + wire.HEADER.size] ^ 0x01]))
        victim.start()
        victim.wait_ready()
        self.assertIn("a record that the root did not sign", victim.log_text())
        fleet["eu-2"].signal(signal.SIGCONT)
        self.settle(fleet, 2)

    def test_a_root_that_is_killed_before_its_decision_aborts_and_publishes_again(self):
        fleet = self.converged_fleet()
        self.hold_refit(fleet, held="eu-2")
        until("a relay to apply", lambda: fleet["us-1"].marker().get("state") == "applying")
        fleet.root.kill()
        fleet["eu-2"].signal(signal.SIGCONT)
        fleet.root.start()
        self.settle(fleet, 1)
        history = {row["version"]: row for row in fleet.root.get("/v1/versions")["versions"]}
        self.assertEqual("aborted", history["2"]["result"])
        # The root ends what it left open by a refit that changes nothing: the next one is v4.
        self.assertEqual("aborted", history["3"]["result"])
        again = self.step(fleet, 4, base=1)
        fleet.publish(again, "--wait")
        self.settle(fleet, 4)

    def test_a_relay_in_the_middle_of_the_tree_takes_nobody_with_it(self):
        fleet = self.converged_fleet({"us": ["root"], "eu": ["eu-1", "eu-2", "eu-3"]})
        head = fleet[fleet.root.row("eu-2")["actual_parent"]]
        self.assertIsNot(fleet.root, head)
        head.kill()
        until("its children to be adopted", lambda: all(
            fleet.root.row(name).get("state") == "IDLE" and fleet.root.row(name)["actual_parent"] not in ("", head.name)
            for name in ("eu-1", "eu-2", "eu-3") if name != head.name), seconds=60)
        head.start()
        fleet.publish(self.step(fleet, 2), "--wait")
        self.settle(fleet, 2)

    def test_every_process_at_once(self):
        fleet = self.converged_fleet()
        fleet.publish(self.step(fleet, 2), "--wait")
        for host in fleet.hosts.values():
            host.kill()
        fleet.start_all()
        self.settle(fleet, 2)
        fleet.publish(self.step(fleet, 3), "--wait")
        self.settle(fleet, 3)


class OtherImages(Scene):
    def test_a_host_with_another_image_becomes_the_version_by_content(self):
        fleet = self.fleet()
        fleet.put_image("us-1", toy_model.step(self.contents[1], 0.01, seed=50, only={"lm_head.weight"}), shards=2)
        fleet.put_image("eu-1", toy_model.make(seed=51, scale=2), shards=1)
        fleet.start_all()
        self.settle(fleet, 1)
        self.assertTrue((fleet["us-1"].image / "model-00002-of-00002.safetensors").exists(), "a host keeps its own files")

    def test_a_block_damaged_while_the_daemon_was_down_is_repaired_at_the_start(self):
        fleet = self.converged_fleet()
        relay = fleet["us-1"]
        self.assertEqual(0, relay.stop())
        self.flip_bit(relay)
        self.assertIsNotNone(st.difference(self.contents[1], st.read_checkpoint(relay.image)))
        relay.start()
        relay.wait_ready()
        until("the block to be put right", lambda: st.difference(self.contents[1], st.read_checkpoint(relay.image)) is None)
        self.settle(fleet, 1)

    def test_a_block_damaged_under_a_running_daemon_is_found_by_verify_and_repaired_by_the_next_refit(self):
        fleet = self.converged_fleet()
        self.assertEqual(dict.fromkeys(fleet.hosts, "ok"), self.verified(fleet))
        self.flip_bit(fleet["eu-2"])
        self.assertEqual({name: "damaged" if name == "eu-2" else "ok" for name in fleet.hosts}, self.verified(fleet))
        fleet.publish(self.step(fleet, 2), "--wait")
        self.settle(fleet, 2)

    def verified(self, fleet):
        """What each daemon finds when it reads its whole image again; the exit code must say the same."""
        told = fleet.root.ctl("verify", "--deep", "-o", "json", expect=None)
        results = {row["node"]: row["result"] for row in told.document["nodes"]}
        self.assertEqual(set(results.values()) == {"ok"}, told.code == 0, told)
        return results

    def flip_bit(self, host):
        shard = max(host.image.glob("*.safetensors"), key=lambda path: path.stat().st_size)
        with open(shard, "r+b") as file:
            file.seek(shard.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, 1)
            file.write(bytes([byte ^ 0x40]))

    def test_an_image_that_shares_its_files_with_another_directory_is_refused_by_name(self):
        fleet = self.fleet()
        golden = fleet.export("golden", self.contents[1])
        image = fleet["us-1"].image
        image.mkdir()
        for file in golden.iterdir():
            (image / file.name).hardlink_to(file)
        fleet.start_all()
        reason = until("us-1 to say why", lambda: fleet["us-1"].row().get("reason"))
        self.assertRegex(reason["text"], r"model-0000\d-of-00003\.safetensors")
        fleet.publish(self.step(fleet, 2), "--policy", "quorum:0.7", "--wait")
        fleet.wait_converged(2, names=["root", "eu-1", "eu-2"])
        fleet.assert_images(self.contents[1], names=["us-1"])
        self.assertIsNone(st.difference(self.contents[1], st.read_checkpoint(golden)))


class Hanging(Scene):
    def test_one_stopped_host_delays_only_itself(self):
        fleet = self.converged_fleet(policy="quorum", quorum="0.7")
        fleet["eu-2"].signal(signal.SIGSTOP)
        for version in (2, 3):
            fleet.publish(self.step(fleet, version), "--wait")
            fleet.wait_converged(version, names=["root", "us-1", "eu-1"])
        fleet["eu-2"].signal(signal.SIGCONT)
        self.settle(fleet, 3)

    def test_a_root_with_a_stopped_child_ends_in_time(self):
        fleet = self.converged_fleet()
        fleet["us-1"].signal(signal.SIGSTOP)
        self.assertEqual(0, fleet.root.stop(seconds=15))
        fleet["us-1"].signal(signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(e2e_main())
