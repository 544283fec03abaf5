"""relayctl bench codec: what it measures is what a refit would send, and its ratios are those of its rates.

Nothing here depends on how fast the machine is.
"""
import os
import subprocess

from relayctl_case import RELAYCTL, RUN_SECONDS_MAX, RelayctlCase, main

PASSES = ["compare", "memcpy", "digest", "scan", "encode", "decode", "apply", "dense_encode", "dense_decode"]


class Bench(RelayctlCase):
    def bench(self, *options):
        return self.relayctl("bench", "codec", "--size", "256KiB", "--seconds", "1ms", *options)

    def test_payload_and_bounds_are_those_of_the_same_checkpoints_from_disk(self):
        self.relayctl("checkpoint", "make", "base", "--size", "256KiB", "--seed", 5)
        self.relayctl("checkpoint", "step", "next", "--from", "base", "--change", "3%", "--seed", 6)
        stats = self.relayctl("delta", "stats", "base", "next", "-o", "json").json
        out = self.bench("--seed", 5, "--change", "3%", "-o", "json").json
        self.assertEqual((out["schema"], out["seed"], out["threads"]), ("deltarelay.bench-codec/1", 5, 1))
        (change,) = out["changes"]
        for key in ("elements", "changed_elements", "dense_bytes", "wire_bytes", "order0_bound_bytes",
                    "given_exponent_bound_bytes"):
            self.assertEqual(change[key], stats[key], key)
        self.assertLess(change["first_sync_payload_bytes"], change["dense_bytes"])

    def test_ratios_are_those_of_the_rates(self):
        for change in self.bench("--change", "1%,5%", "-o", "json").json["changes"]:
            self.assertEqual([p["name"] for p in change["passes"]], PASSES)
            rates = {p["name"]: p["bytes_per_second_per_core"] for p in change["passes"]}
            self.assertGreater(min(rates.values()), 0)
            self.assertGreaterEqual(change["rounds"], 3)
            for row in change["passes"]:
                rate = rates[row["name"]]
                self.assertAlmostEqual(row["of_compare"], rate / rates["compare"])
                self.assertAlmostEqual(row["of_memcpy"], rate / rates["memcpy"])

    def test_the_default_changes_are_those_of_the_targets_and_text_has_a_row_for_each_pass(self):
        text = self.bench("-q").out
        self.assertEqual(len([line for line in text.splitlines() if " changed: " in line]), 3)
        for name in PASSES:
            self.assertRegex(text, rf"(?m)^{name} +\d.*/s +\d+\.\d\d +\d+\.\d\d  ")
        self.assertEqual([c["change_asked"] for c in self.bench("-o", "json").json["changes"]], [0.01, 0.03, 0.05])

    def test_several_threads_share_the_batches(self):
        out = self.relayctl("bench", "codec", "--size", "34MiB", "--seconds", "1ms", "--change", "3%", "--threads", 2,
                            "-o", "json").json
        self.assertEqual((out["threads"], [p["name"] for p in out["changes"][0]["passes"]]), (2, PASSES))

    def test_what_makes_no_sense_is_refused(self):
        for options in (("--size", "1KiB"), ("--change", "0%"), ("--change", "101%"), ("--change", "1%,x"),
                        ("--threads", 0), ("--seconds", "x")):
            self.relayctl("bench", "codec", *options, expect=2)
        run = self.relayctl("bench", "codec", "--size", "256KiB", "--seconds", "1ms", "--threads", 200, expect=2)
        self.assertIn("larger --size", run.err)

    def test_nothing_is_left_behind(self):
        work = self.dir / "work"
        work.mkdir()
        done = subprocess.run([RELAYCTL, "bench", "codec", "--size", "256KiB", "--seconds", "1ms", "--change", "3%", "-q"],
                              env={"PATH": os.environ["PATH"], "TMPDIR": str(work)}, capture_output=True,
                              timeout=RUN_SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(work.iterdir()), [])
        missing = subprocess.run([RELAYCTL, "bench", "codec", "--size", "256KiB"], capture_output=True, timeout=RUN_SECONDS_MAX,
                                 env={"PATH": os.environ["PATH"], "TMPDIR": str(work / "none")})
        self.assertEqual(missing.returncode, 1)
        self.assertIn(b"TMPDIR", missing.stderr)


if __name__ == "__main__":
    main()
