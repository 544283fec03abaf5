"""relayctl plan: what operators see of good and bad topology files, and what scripts get."""
import json
import pathlib
import subprocess

from relayctl_case import RELAYCTL, RUN_SECONDS_MAX, RelayctlCase, main

CONFIG = pathlib.Path(__file__).resolve().parents[3] / "config"

SMALL = """\
mesh: m
plan_epoch: 7
regions:
  - {name: a, lan_rate: 800Mbps, rtt: 500ms}
  - {name: b, lan_rate: 800Mbps, rtt: 500ms}
links: [{from: a, to: b, rate: 80Mbps, rtt: 100ms}]
hosts:
  - {name: r, region: a, address: "r:7443"}
  - {name: "h{1..2}", region: a, address: "h{1..2}:7443"}
  - {name: "b{0..2}", region: b, address: "b{0..2}:7443"}
root: r
standby: [h1]
refit: {size: 2MB, change: 100%}
rates: {encode: 1PB/s, apply: 1PB/s}
"""

UNICODE = """\
r  root  a  r:7443
├─ b0  head of b  10 MB/s
│  ├─ b1
│  └─ b2
├─ h1
└─ h2
"""
ASCII = UNICODE.replace("├─", "|-").replace("└─", "`-").replace("│", "|")


class PlanCase(RelayctlCase):
    def topology(self, text, name="topology.yaml"):
        (self.dir / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return name


class ValidateTest(PlanCase):
    def refused_as_json(self, text):
        """Whoever asked for JSON gets it on stdout, also when the answer is no."""
        done = subprocess.run([RELAYCTL, "plan", "validate", self.topology(text), "-o", "json"], cwd=self.dir, capture_output=True,
                              timeout=RUN_SECONDS_MAX)
        self.assertEqual((done.returncode, done.stderr), (3, b""))
        return json.loads(done.stdout)

    def refused(self, text):
        """The findings, on stderr and nowhere else."""
        run = self.relayctl("plan", "validate", self.topology(text), expect=3)
        self.assertEqual(run.out, "")
        return run.err

    def test_a_good_file_is_said_to_be_good_in_one_line(self):
        run = self.relayctl("plan", "validate", self.topology(SMALL))
        self.assertRegex(run.out, r"^topology\.yaml: valid; 6 hosts in 2 regions, plan 7 \([0-9a-f]{16}\)\n$")
        self.assertEqual(run.err, "")
        self.assertEqual(self.relayctl("plan", "validate", "topology.yaml", "-q").out, "")

    def test_the_files_of_the_product_are_good(self):
        for name in ("topology.example.yaml", "reference-1t.yaml"):
            self.relayctl("plan", "validate", CONFIG / name)

    def test_mistakes_are_named_with_their_place_and_the_nearest_name(self):
        # As the contract shows them: an unknown key, and a node that appears twice.
        lines = SMALL.split("\n")
        lines[8] = '  - {name: "h{1..2}", region: a, address: "h{1..2}:7443", upllink: 1Gbps}'
        lines.insert(10, '  - {name: h2, region: b, address: "other:7443"}')
        self.assertEqual(
            self.refused("\n".join(lines)),
            'topology.yaml:9:59: error: unknown key "upllink" (did you mean "uplink"?)\n'
            'topology.yaml:11:12: error: node "h2" appears twice (first at line 9)\n')

    def test_a_plan_that_cannot_be_made_is_a_mistake_in_the_file(self):
        self.assertEqual(
            self.refused(SMALL.replace("links: [{from: a, to: b, rate: 80Mbps, rtt: 100ms}]\n", "")),
            'topology.yaml:5:5: error: no path of links leads from the root\'s region to region "b"\n')
        self.assertEqual(
            self.refused(SMALL.replace("root: r\n", "root: r\nlimits: {max_children: 1}\n").replace('"r:7443"}', '"r:7443", max_children: 0}')),
            'topology.yaml:4:5: error: the hosts of region "a" may have 2 children together, and 3 have to be fed from head "r"; '
            "raise max_children\n")

    def test_files_that_are_none_are_one_finding(self):
        for text, message in ((b"", "topology.yaml: error: the file: must be a map of keys, not nothing\n"),
                              (b"\xff\xfe", "topology.yaml:1:1: error: not valid UTF-8\n"),
                              (b"a: \0", "topology.yaml:1:4: error: NUL byte; is this a text file?\n"),
                              (b"[" * 100_000, "topology.yaml:1:33: error: nested more than 32 levels deep\n"),
                              (b"x" * 3_000_000, "topology.yaml: error: larger than 2097152 bytes; is this the right file?\n")):
            with self.subTest(message):
                self.assertEqual(self.refused(text), message)

    def test_a_file_that_cannot_be_read_says_why(self):
        self.assertEqual(self.relayctl("plan", "validate", "none.yaml", expect=3).err,
                         "none.yaml: error: cannot be opened: No such file or directory\n")
        self.assertEqual(self.relayctl("plan", "validate", ".", expect=3).err, ".: error: cannot be read: Is a directory\n")

    def test_json_has_the_findings_for_scripts(self):
        good = self.relayctl("plan", "validate", self.topology(SMALL), "-o", "json").json
        self.assertEqual((good["schema"], good["valid"], good["findings"]), ("deltarelay.findings/1", True, []))
        self.assertEqual((good["plan_epoch"], good["hosts"], good["regions"]), ("7", 6, 2))
        bad = self.refused_as_json(SMALL.replace("root: r", "root: x"))
        self.assertFalse(bad["valid"])
        self.assertEqual(bad["findings"],
                         [{"file": "topology.yaml", "line": 11, "column": 7, "message": 'root: unknown host "x"'}])


class ShowTest(PlanCase):
    def test_a_summary_and_the_tree(self):
        run = self.relayctl("plan", "show", self.topology(SMALL))
        summary, tree = run.out.split("\n\n")
        self.assertEqual(tree, UNICODE)
        lines = summary.split("\n")
        self.assertRegex(lines[0], r"^plan       7 \([0-9a-f]{16}\) of mesh m: 6 hosts in 2 regions, root r$")
        self.assertEqual(lines[1], "refit      2 MB at 100.0 % changed: 2 MB to every host")
        self.assertRegex(lines[2], r"^predicted  .* of it commit\); bound .*, efficiency .* x faster than the dense checkpoint")
        self.assertEqual([line.split()[0] for line in lines[3:]], ["region", "a", "b"])
        self.assertIn("link a to b", lines[5])

    def test_as_tree_dot_and_json(self):
        file = self.topology(SMALL)
        self.assertEqual(self.relayctl("plan", "show", file, "--as", "tree").out, UNICODE)
        self.assertEqual(self.relayctl("plan", "show", file, "--as", "tree", "--ascii").out, ASCII)
        dot = self.relayctl("plan", "show", file, "--as", "dot").out
        self.assertTrue(dot.startswith("digraph plan {\n"))
        self.assertIn('  "r" -> "b0" [label="10 MB/s"];\n', dot)
        self.assertEqual(dot.count("->"), 5)
        by_as = self.relayctl("plan", "show", file, "--as", "json").out
        self.assertEqual(by_as, self.relayctl("plan", "show", file, "-o", "json").out)

    def test_json_is_the_whole_plan(self):
        plan = self.relayctl("plan", "show", self.topology(SMALL), "-o", "json").json
        self.assertEqual((plan["schema"], plan["mesh"], plan["plan_epoch"], plan["root"], plan["standby"]),
                         ("deltarelay.plan/1", "m", "7", "r", ["h1"]))
        nodes = {node["name"]: node for node in plan["nodes"]}
        self.assertEqual([node["rank"] for node in plan["nodes"]], list(range(6)))
        self.assertIsNone(nodes["r"]["parent"])
        self.assertEqual(nodes["r"]["children"], ["b0", "h1", "h2"])
        self.assertEqual(nodes["b0"]["region_head"], True)
        self.assertEqual(nodes["b0"]["inbound_bytes_per_second"], 10_000_000)
        self.assertEqual(nodes["b0"]["bound_by"], "link")
        self.assertEqual((nodes["b2"]["parent"], nodes["b2"]["depth"], nodes["b2"]["address"]), ("b0", 2, "b2:7443"))
        self.assertEqual(nodes["b2"]["candidates"][0], "b0")
        self.assertEqual(nodes["b2"]["candidates"][-1], "r")
        predicted = plan["predicted"]
        self.assertEqual((predicted["checkpoint_bytes"], predicted["payload_bytes"]), (2_000_000, 2_000_000))
        self.assertEqual([region["name"] for region in predicted["regions"]], ["a", "b"])
        self.assertEqual(predicted["regions"][1]["limited_by"], "link a to b")
        # The link's frames: one takes s/B + 1.5 ms + 50 ms, the rest follows at 10 MB/s; then one hop of region b.
        frame = 1024 * 1024
        head = frame / 10e6 + 0.0015 + 0.05 + (2e6 - frame) / 10e6
        self.assertAlmostEqual(nodes["b0"]["done_seconds"], head, delta=0.0006)
        self.assertGreater(predicted["total_seconds"], nodes["b2"]["done_seconds"])
        self.assertLessEqual(predicted["efficiency"], 1)

    def test_names_alone_in_rank_order(self):
        run = self.relayctl("plan", "show", self.topology(SMALL), "-o", "name")
        self.assertEqual(run.out, "r\nb0\nh1\nh2\nb1\nb2\n")

    def test_one_file_has_one_plan_and_the_epoch_is_not_part_of_it(self):
        digest = self.relayctl("plan", "show", self.topology(SMALL), "-o", "json").json["digest"]
        again = self.relayctl("plan", "show", self.topology(SMALL.replace("plan_epoch: 7", "plan_epoch: 8")), "-o", "json").json
        self.assertEqual((again["digest"], again["plan_epoch"]), (digest, "8"))
        other = self.relayctl("plan", "show", self.topology(SMALL.replace("80Mbps", "40Mbps")), "-o", "json").json
        self.assertNotEqual(other["digest"], digest)

    def test_thousands_of_hosts_are_planned_and_shown(self):
        hosts = "".join(f'  - {{name: "n{i}-{{000..499}}", region: a, address: "n{i}-{{000..499}}:7443"}}\n' for i in range(10))
        text = ('mesh: m\nregions: [{name: a, lan_rate: 25Gbps}]\nroot: n0-000\nhosts:\n' + hosts)
        plan = self.relayctl("plan", "show", self.topology(text), "-o", "json").json
        self.assertEqual(len(plan["nodes"]), 5000)
        place = {node["name"]: node for node in plan["nodes"]}
        for node in plan["nodes"][1:]:
            self.assertLess(place[node["parent"]]["rank"], node["rank"])
            self.assertTrue(all(place[c]["rank"] < node["rank"] for c in node["candidates"]))

    def test_bad_files_and_bad_lines_have_their_exit_codes(self):
        self.assertIn("unknown key", self.relayctl("plan", "show", self.topology("bogus: 1\n"), expect=3).err)
        self.relayctl("plan", "show", self.topology(SMALL), "--as", "picture", expect=2)
        self.relayctl("plan", "show", expect=2)
        self.relayctl("plan", expect=2)
        self.relayctl("plan", "validate", "a", "b", expect=2)
        self.relayctl("plan", "show", "topology.yaml", "-o", "xml", expect=2)


if __name__ == "__main__":
    main()
