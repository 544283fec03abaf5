"""Refits that end in the middle, on real daemons: an operator's abort while relays and the root die, and a root that comes back without
its state. The fleet ends at one content, and no host ever says that it holds what it does not.

The refit is held in the middle by one stopped host (SIGSTOP): by the policy `all` nothing commits before that host has prepared.
"""
import shutil
import signal
import sys

import safetensors_py as st
import toy_model
from fleet import FleetCase, e2e_main, until
from version_watch import VersionWatch

REGIONS = {"us": ["root", "us-1"], "eu": ["eu-1", "eu-2"]}


class Scene(FleetCase):
    def converged_fleet(self):
        fleet = self.make_fleet(REGIONS)
        self.contents = {1: toy_model.make(seed=1, scale=2)}
        fleet.put_image("root", self.contents[1])
        fleet.start_all()
        fleet.wait_converged(1)
        return fleet

    def export(self, fleet, name, base, seed):
        content = toy_model.step(self.contents[base], 0.03, seed=seed)
        return fleet.export(name, content), content

    def hold_in_the_middle(self, fleet):
        """Publishes v2 and returns when us-1 has written some of it, while eu-2 stands still."""
        directory, self.contents[2] = self.export(fleet, "held", 1, seed=2)
        fleet["eu-2"].signal(signal.SIGSTOP)
        fleet.publish(directory)
        relay = fleet["us-1"]
        until("us-1 to be in the middle of v2", lambda: relay.marker().get("state") == "applying" and
              st.difference(self.contents[1], st.read_checkpoint(relay.image)) is not None)

    def settle(self, fleet, version, content):
        fleet.wait_converged(version, seconds=90)
        fleet.assert_images(content)
        fleet.assert_all_alive()

    def committed(self, fleet):
        """The version of the root's image, once it has opened it."""
        def version():
            status = fleet.root.get("/v1/status")
            return int(status["committed"]["version"]) if status else 0
        return until("the root to open its image", version)

    def publish_next(self, fleet, used):
        directory, content = self.export(fleet, "next", 1, seed=77)
        # A root that came back may be ending what it had left open, by a refit of its own.
        until("the root to take the next refit", lambda: fleet.publish(directory, "--wait", expect=None).code == 0)
        version = self.committed(fleet)
        self.assertNotIn(version, used)
        self.settle(fleet, version, content)


class Aborted(Scene):
    def abort(self, disturb):
        fleet = self.converged_fleet()
        watch = VersionWatch(fleet)
        watch.contents.update(self.contents)
        with watch:
            self.hold_in_the_middle(fleet)
            fleet.root.ctl("abort", "2")
            disturb(fleet)
            fleet["eu-2"].signal(signal.SIGCONT)
            fleet.wait_converged(1, seconds=90)
        self.assertEqual([], watch.false_words)
        self.assertGreater(watch.judged, 0)
        self.settle(fleet, 1, self.contents[1])
        self.publish_next(fleet, used={1, 2})

    def test_every_host_goes_back(self):
        self.abort(lambda fleet: None)

    def test_a_relay_that_dies_as_it_is_told_goes_back(self):
        def disturb(fleet):
            fleet["us-1"].kill()
            fleet["us-1"].start()
        self.abort(disturb)

    def test_a_host_that_hung_and_then_died_goes_back(self):
        def disturb(fleet):
            fleet["eu-2"].kill()
            fleet["eu-2"].start()
        self.abort(disturb)

    def test_a_root_that_dies_as_it_is_asked_goes_back_and_takes_the_fleet_along(self):
        def disturb(fleet):
            fleet.root.kill()
            fleet.root.start()
        self.abort(disturb)


class RootWithoutItsState(Scene):
    def wipe_root(self, fleet):
        fleet.root.kill()
        shutil.rmtree(fleet.root.state)
        fleet.root.start()
        fleet.root.wait_ready()

    def test_between_refits_the_content_stays(self):
        fleet = self.converged_fleet()
        directory, self.contents[2] = self.export(fleet, "v2", 1, seed=2)
        fleet.publish(directory, "--wait")
        self.settle(fleet, 2, self.contents[2])
        self.wipe_root(fleet)
        self.settle(fleet, self.committed(fleet), self.contents[2])

    def test_in_the_middle_of_a_refit_the_fleet_goes_back(self):
        fleet = self.converged_fleet()
        self.hold_in_the_middle(fleet)
        self.wipe_root(fleet)
        fleet["eu-2"].signal(signal.SIGCONT)
        self.settle(fleet, self.committed(fleet), self.contents[1])
        self.publish_next(fleet, used={1, 2})

    def test_a_number_used_twice_is_never_taken_for_the_other_content(self):
        fleet = self.converged_fleet()
        self.hold_in_the_middle(fleet)
        relays = [host for host in fleet.hosts.values() if host is not fleet.root]
        for host in relays:
            host.kill()
        self.wipe_root(fleet)
        directory, other = self.export(fleet, "other", 1, seed=99)
        until("the root to publish without its fleet", lambda: fleet.publish(directory, "--version", "2", expect=None).code == 0)
        for host in relays:
            host.start()
        self.settle(fleet, 2, other)


if __name__ == "__main__":
    sys.exit(e2e_main())
