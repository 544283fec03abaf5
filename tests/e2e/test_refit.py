"""The product's promise, whole: six empty relays in three regions get the checkpoint, then three refits, and never say a false word."""
import sys
import unittest

import toy_model
from fleet import Fleet, e2e_main
from version_watch import VersionWatch

REGIONS = {"us": ["root", "us-1", "us-2"], "eu": ["eu-1", "eu-2"], "ap": ["ap-1", "ap-2"]}
RATES = (0.01, 0.03, 0.05)


class Refit(unittest.TestCase):
    def test_empty_hosts_are_filled_and_three_refits_are_byte_equal_while_no_stated_version_is_ever_false(self):
        contents = {1: toy_model.make(seed=1, scale=2)}
        with Fleet(REGIONS) as fleet:
            fleet.put_image("root", contents[1])
            watch = VersionWatch(fleet)
            watch.contents.update(contents)
            with watch:
                fleet.start_all()
                fleet.wait_converged(1)
                fleet.assert_images(contents[1])
                for version, rate in enumerate(RATES, 2):
                    contents[version] = watch.contents[version] = toy_model.step(contents[version - 1], rate, seed=version)
                    # Cut into shards in another way each time: hosts keep their own files.
                    self.refit(fleet, version, contents, shards=version)
                self.assertEqual([], watch.false_words)
            for host in fleet.hosts.values():
                watch.look(host)
            self.assertEqual([], watch.false_words)
            # The watch must have had something to judge: each host at the first and at the last version.
            for host in fleet.hosts:
                self.assertIn((host, 1), watch.seen)
                self.assertIn((host, len(contents)), watch.seen)
            self.check_history(fleet, contents)
            fleet.assert_all_alive()
            for host in reversed(fleet.hosts.values()):
                self.assertEqual(0, host.stop(), host.name)

    def refit(self, fleet, version, contents, shards):
        companions = {"config.json": f'{{"model_type": "toy", "step": {version}}}\n', "tokenizer.json": "{}\n"}
        directory = fleet.export(f"v{version}", contents[version], shards=shards, companions=companions)
        fleet.publish(directory, "--wait")
        fleet.wait_converged(version)
        fleet.assert_images(contents[version])
        for host in fleet.hosts.values():
            for name, text in companions.items():
                self.assertEqual(text, (host.image / name).read_text(), f"{host.name}/{name}")

    def check_history(self, fleet, contents):
        rows = {int(row["version"]): row for row in fleet.root.ctl("versions", "-o", "json").document["versions"]}
        self.assertEqual(set(contents), set(rows))
        for version, rate in enumerate(RATES, 2):
            row = rows[version]
            dense = sum(len(tensor.data) for tensor in contents[version].values())
            self.assertEqual((str(version - 1), "committed", dense), (row["base"], row["result"], row["dense_bytes"]))
            self.assertEqual((len(fleet.hosts), []), (row["nodes_committed"], row["left_out"]))
            self.assertAlmostEqual(100 * rate, row["changed_percent"], delta=0.1)
            self.assertLess(row["payload_bytes"], dense * rate * 1.2)
        status = fleet.root.ctl("status", "-o", "json").document
        self.assertEqual((str(len(contents)), len(fleet.hosts)),
                         (status["committed"]["version"], status["committed"]["nodes_committed"]))
        for host in fleet.hosts.values():
            host.ctl("verify", "--deep")


if __name__ == "__main__":
    sys.exit(e2e_main())
