"""Nothing is stored and then forwarded: two hops below the root, one of them over a delayed line, frames are applied before the root
has encoded the last one.

The root is stopped (SIGSTOP) in the middle of its encoding; what the grandchild applies meanwhile can only come from frames that left
before the end was known. That the end was not known is what the root itself says when it goes on.
"""
import functools
import signal
import sys
import time
import unittest

from byte_proxy import ByteProxy
from fleet import Fleet, e2e_main, relayctl, until

SIZE = "384MiB"
DELAY_SECONDS = 0.05


class Pipelining(unittest.TestCase):
    def test_a_grandchild_applies_frames_before_the_root_has_encoded_the_last(self):
        with Fleet({"us": ["root"], "eu": ["mid"], "ap": ["leaf"]}, chain=True, block_size="1MiB") as fleet:
            with fleet.behind(fleet["mid"], functools.partial(ByteProxy, delay_seconds=DELAY_SECONDS)) as proxy:
                relayctl("checkpoint", "make", fleet.root.image, "--size", SIZE, "--seed", "1", seconds=120)
                after = fleet.directory / "after"
                relayctl("checkpoint", "step", after, "--from", fleet.root.image, "--change", "3%", "--seed", "2", seconds=120)
                fleet.start_all()
                fleet.wait_converged(1, seconds=120)
                self.assertEqual("mid", fleet.root.row("leaf")["actual_parent"])
                before = proxy.forwarded_bytes
                self.refit(fleet, after)
                fleet.wait_converged(2)
                self.assertGreater(proxy.forwarded_bytes, before)
                for host in fleet.hosts.values():
                    relayctl("checkpoint", "diff", after, host.image, seconds=120)

    def refit(self, fleet, directory):
        fleet.publish(directory)
        until("the first blocks to be scanned", lambda: self.scanned(fleet))
        fleet.root.signal(signal.SIGSTOP)
        try:
            stopped_at = time.monotonic()
            row = until("the leaf to apply", lambda: self.applying(fleet["leaf"]), seconds=4)
            waited = time.monotonic() - stopped_at
        finally:
            fleet.root.signal(signal.SIGCONT)
        root = fleet.root.row()
        self.assertEqual(0, root["total_frames"], "the root had encoded everything before it was stopped; make SIZE larger")
        self.assertEqual(0, row["total_frames"], "END had arrived at the leaf")
        print(f"leaf had applied {row['applied_frames']} frames {waited * 1000:.0f} ms after the root was stopped", file=sys.stderr)

    def scanned(self, fleet):
        flight = (fleet.root.get("/v1/status") or {}).get("in_flight") or {}
        return flight.get("scanned_bytes", 0) > 0 or flight.get("payload_bytes", 0) > 0

    def applying(self, leaf):
        row = leaf.row()
        return row if row.get("receiving_version") == "2" and row["applied_frames"] > 0 else None


if __name__ == "__main__":
    sys.exit(e2e_main())
