"""What operators are shown while a host is down, a refit waits for it, is aborted and taken back: true at each moment.

Each claim is held against the host's own marker, or against what was done to the fleet.
"""
import datetime
import functools
import sys
import time

import toy_model
from byte_proxy import ByteProxy
from fleet import FleetCase, e2e_main, until


class ShownState(FleetCase):
    def fleet(self):
        fleet = self.make_fleet({"us": ["root", "us-1"], "eu": ["eu-1"]}, prepare="10m")
        self.first = toy_model.make(seed=1, scale=4)
        self.second = toy_model.step(self.first, 0.05, seed=2)
        fleet.put_image("root", self.first)
        # Slow towards the root, so that putting blocks back takes long enough to be looked at.
        proxy = fleet.behind(fleet.root, functools.partial(ByteProxy, delay_seconds=0.05))
        self.addCleanup(proxy.close)
        fleet.start_all()
        fleet.wait_converged(1)
        return fleet

    def status(self, host):
        return host.get("/v1/status") or {}

    def test_a_refit_that_waits_for_a_lost_host_and_is_taken_back(self):
        fleet = self.fleet()
        began = time.time()
        fleet["eu-1"].kill()
        until("the root to miss eu-1", lambda: fleet.root.row("eu-1").get("state") == "unreachable")
        age = time.time() - self.seconds_of(fleet.root.row("eu-1")["since"])
        self.assertLessEqual(age, time.time() - began + 0.5, "it is not away for longer than it is")

        export = fleet.export("second", self.second)
        dry = fleet.publish(export, "--dry-run", "-o", "json").document
        self.assertEqual(("2", "1", True), (dry["version"], dry["base"], dry["dry_run"]))
        fleet.publish(export)
        awaited = until("the refit to wait", lambda: self.status(fleet.root).get("in_flight", {}).get("awaited"))
        self.assertIn({"node": "eu-1", "state": "unreachable"}, awaited["first"])
        until("us-1 to be prepared", lambda: fleet.root.row("us-1").get("state") == "PREPARED")
        self.assertEqual([{"node": "eu-1", "state": "unreachable"}],
                         until("eu-1 alone to be awaited", lambda: self.only_one(fleet))["first"])
        self.assertEqual(600, awaited["timeout_seconds"])
        text = fleet.root.ctl("status").out
        self.assertIn("waits for eu-1 (unreachable); the root decides without them after 10m without any progress", text)

        fleet.root.ctl("abort", "2")
        seen = until("us-1 to put v1 back", lambda: self.undoing(fleet))
        self.assertEqual(("1", "0"), (seen["version"], seen["receiving_version"]))
        while self.undoing(fleet):
            status, relay = self.status(fleet.root), self.status(fleet["us-1"])
            tree = fleet.root.ctl("tree").out
            waited = fleet.root.ctl("wait", "converged", "--percent", "60", "--timeout", "0", expect=None)
            # Only what holds for as long as it is not back: it may be since the question.
            if fleet["us-1"].marker()["state"] == "applying":
                self.assertNotIn("in_flight", status)
                self.assertEqual((1, 1, "us-1"), tuple(status["syncing"][key] for key in ("nodes", "undoing")) +
                                 (status["syncing"]["slowest"]["node"],))
                self.assertEqual(1, status["committed"]["nodes_committed"])
                self.assertNotIn("in_flight", relay, "what is taken back is not in flight")
                self.assertRegex(tree, r"us-1 +v2 → v1  SYNCING .*v2 was aborted, v1 is put back")
                self.assertEqual(5, waited.code, waited)
        until("us-1 to be back", lambda: fleet.root.row("us-1").get("state") == "IDLE")
        self.assertNotIn("syncing", self.status(fleet.root))
        self.assertEqual(0, fleet.root.ctl("wait", "converged", "--percent", "60", "--timeout", "5s").code)
        fleet.assert_images(self.first, names=["root", "us-1"])

    def only_one(self, fleet):
        awaited = self.status(fleet.root).get("in_flight", {}).get("awaited")
        return awaited if awaited and awaited["nodes"] == 1 else None

    def undoing(self, fleet):
        row = fleet.root.row("us-1")
        return row if row.get("undoing_version") == "2" else None

    def seconds_of(self, text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    def test_a_relay_that_waits_for_a_version_learns_of_its_abort(self):
        fleet = self.fleet()
        fleet["eu-1"].kill()
        fleet.publish(fleet.export("second", self.second))
        until("us-1 to be prepared", lambda: fleet.root.row("us-1").get("state") == "PREPARED")
        fleet.root.ctl("abort", "2")
        ran = fleet["us-1"].ctl("wait", "committed", "--version", "2", "--timeout", "30s", expect=None)
        self.assertEqual(1, ran.code, ran)
        self.assertIn("v2 will never be committed: it was aborted", ran.err)

    def test_hosts_that_are_filled_are_counted_in_status(self):
        fleet = self.make_fleet({"us": ["root", "us-1"], "eu": ["eu-1"]})
        fleet.put_image("root", toy_model.make(seed=1, scale=4))
        proxy = fleet.behind(fleet.root, functools.partial(ByteProxy, delay_seconds=0.05))
        self.addCleanup(proxy.close)
        fleet.start_all()
        syncing = until("somebody to be filled", lambda: self.status(fleet.root).get("syncing"))
        self.assertEqual(0, syncing["undoing"])
        self.assertIn(syncing["nodes"], (1, 2))
        fleet.wait_converged(1)
        self.assertNotIn("syncing", self.status(fleet.root))


if __name__ == "__main__":
    sys.exit(e2e_main())
