"""`relayctl verify` asks a whole fleet of real daemons: damage is named by node, tensor and block; who cannot answer is a row too.
"""
import contextlib
import fcntl
import json
import struct
import sys

import toy_model
from fleet import FleetCase, e2e_main, until

REGIONS = {"us": ["root", "us-1"], "eu": ["eu-1", "eu-2"]}
BLOCK_BYTES = 64 << 10


@contextlib.contextmanager
def damaged(host, at=0.5):
    """One bit of the host's largest shard is another one meanwhile; gives the tensor and its block."""
    shard = max(host.image.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    with open(shard, "r+b") as file:
        header_bytes, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_bytes))
        data = 8 + header_bytes
        place = data + int((shard.stat().st_size - data) * at)
        tensor, begin = next((name, entry["data_offsets"][0]) for name, entry in header.items() if name != "__metadata__"
                             and entry["data_offsets"][0] <= place - data < entry["data_offsets"][1])
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x40]))
        file.flush()
        try:
            yield {"tensor": tensor, "block": (place - data - begin) // BLOCK_BYTES}
        finally:
            file.seek(place)
            file.write(bytes([byte]))


class Verify(FleetCase):
    def converged_fleet(self, **options):
        fleet = self.make_fleet(REGIONS, **options)
        self.first = toy_model.make(seed=1, scale=2)
        fleet.put_image("root", self.first)
        fleet.start_all()
        fleet.wait_converged(1)
        return fleet

    def verify(self, host, expect, *arguments):
        told = host.ctl("verify", "--deep", "-o", "json", *arguments, expect=expect)
        document = told.document
        self.assertEqual("deltarelay.verify/1", document["schema"])
        self.assertIsInstance(document["round"], str)
        return {row["node"]: row for row in document["nodes"]}, told

    def results(self, rows):
        return {name: row["result"] for name, row in rows.items()}

    def test_a_damaged_byte_of_one_host_is_named_by_the_root_and_a_repaired_one_is_proved(self):
        fleet = self.converged_fleet()
        everyone = dict.fromkeys(fleet.hosts, "ok")
        rows, _ = self.verify(fleet.root, 0)
        self.assertEqual(everyone, self.results(rows))
        for row in rows.values():
            self.assertEqual(("1", "DONE", row["total_bytes"]), (row["version"], row["state"], row["checked_bytes"]))
        with damaged(fleet["eu-2"]) as place:
            rows, told = self.verify(fleet.root, 1)
            self.assertEqual({**everyone, "eu-2": "damaged"}, self.results(rows))
            self.assertEqual((1, [place]), (rows["eu-2"]["damaged_blocks"], rows["eu-2"]["damaged"]))
            self.assertIn("error: eu-2: the image is not what its ledger states", told.err)
            self.assertIn(place["tensor"], told.err)
            table = fleet.root.ctl("verify", "--deep", "-o", "wide", expect=1).out
            self.assertIn(f"eu-2  block {place['block']} of {place['tensor']}\n", table)
            self.assertEqual("eu-2\n", fleet.root.ctl("verify", "--deep", "-o", "name", expect=1).out)
            # A host that is asked itself speaks for itself; sizes and headers are right, so without --deep nothing is found.
            self.assertEqual({"eu-2": "damaged"}, {"eu-2": self.verify(fleet["eu-2"], 1)[0]["eu-2"]["result"]})
            fleet.root.ctl("verify")
        rows, _ = self.verify(fleet.root, 0)
        self.assertEqual(everyone, self.results(rows))
        fleet.assert_images(self.first)
        fleet.assert_all_alive()

    def test_a_host_that_is_gone_is_a_row_and_not_waited_for(self):
        fleet = self.converged_fleet()
        fleet["eu-2"].kill()
        until("the root to miss it", lambda: fleet.root.row("eu-2").get("state") == "unreachable")
        rows, told = self.verify(fleet.root, 4, "--timeout", "60s")
        self.assertEqual({**dict.fromkeys(fleet.hosts, "ok"), "eu-2": "unreachable"}, self.results(rows))
        self.assertEqual("unreachable", rows["eu-2"]["state"])
        self.assertIn("eu-2", told.err)

    def test_an_image_in_the_middle_of_a_refit_is_waited_for_and_never_called_damaged(self):
        fleet = self.converged_fleet(policy="quorum", quorum="0.7")
        relay = fleet["us-1"]
        with open(relay.image / "deltarelay.lock", "a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # an engine: the refit cannot begin to write
            fleet.publish(fleet.export("second", toy_model.step(self.first, 0.03, seed=2)), "--wait")
            until("the refit to be held up", lambda: relay.row().get("state") not in ("", "IDLE"))
            rows, told = self.verify(fleet.root, 5, "--timeout", "2s")
            self.assertEqual(("WAITING", ""), (rows["us-1"]["state"], rows["us-1"]["result"]))
            self.assertIn("v2", rows["us-1"]["text"])
            self.assertIn("us-1", told.err)
            refused = fleet.root.ctl("verify", expect=6)
            self.assertIn("another verification", refused.err)
        fleet.wait_converged(2)
        # The round that was left goes on, and ends now that the image can be read.
        ended = until("the round to end", lambda: (document := fleet.root.get("/v1/verify"))["done"] and document)
        self.assertEqual(dict.fromkeys(fleet.hosts, "ok"), {row["node"]: row["result"] for row in ended["nodes"]})
        rows, _ = self.verify(fleet.root, 0)
        self.assertEqual({"2"}, {row["version"] for row in rows.values()})

    def test_before_the_first_round_there_is_nothing_to_show(self):
        fleet = self.converged_fleet()
        self.assertIsNone(fleet.root.get("/v1/verify"))
        rows, _ = self.verify(fleet.root, 0)
        self.assertEqual(set(fleet.hosts), set(rows))
        self.assertTrue(fleet["eu-1"].get("/v1/verify")["done"])  # a relay knows of the round that it passed on


if __name__ == "__main__":
    sys.exit(e2e_main())
