"""Command lines that cannot be read: exit 2, the word that is wrong, what was probably meant, and where the help is."""
import relayctl_case


class CommandLine(relayctl_case.RelayctlCase):
    def refused(self, *words):
        """The whole line on stderr, without what every such line begins with; stdout must be empty."""
        run = self.relayctl(*words, expect=2)
        self.assertEqual("", run.out)
        start = "error: cannot read the command line: "
        self.assertTrue(run.err.startswith(start), run.err)
        self.assertEqual(1, run.err.count("\n"))
        return run.err[len(start):].strip()

    def test_a_command_that_is_not_one(self):
        for words, said in (
            (["stauts"], 'unknown command "stauts" (did you mean "status"?). Try: relayctl --help'),
            (["plan", "valdate", "x"], 'unknown command "valdate" (did you mean "validate"?). Try: relayctl plan --help'),
            (["checkpoint", "stpe", "--seed", "1"], 'unknown command "stpe" (did you mean "step"?). Try: relayctl checkpoint --help'),
            (["ver"], 'unknown command "ver" (did you mean "versions", "version" or "verify"?). Try: relayctl --help'),
            (["checkp"], 'unknown command "checkp" (did you mean "checkpoint"?). Try: relayctl --help'),
            (["make"], 'unknown command "make" (did you mean "relayctl checkpoint make"?). Try: relayctl --help'),
            (["plan", "frob"], 'unknown command "frob"; `relayctl plan` has validate, show. Try: relayctl plan --help'),
            (["frob"], 'unknown command "frob". Try: relayctl --help'),
            ([""], 'unknown command "". Try: relayctl --help'),
            (["plan"], "`relayctl plan` needs one of validate, show. Try: relayctl plan --help"),
        ):
            self.assertEqual(said, self.refused(*words), words)

    def test_an_option_that_is_not_one(self):
        for words, said in (
            (["status", "--chek"], 'unknown option "--chek" (did you mean "--check"?). Try: relayctl status --help'),
            (["tree", "--regoin", "x"], 'unknown option "--regoin" (did you mean "--region"?). Try: relayctl tree --help'),
            (["versions", "--sokcet=/x"], 'unknown option "--sokcet" (did you mean "--socket"?). Try: relayctl versions --help'),
            (["--sokcet", "/x", "status"], 'unknown option "--sokcet" (did you mean "--socket"?). Try: relayctl status --help'),
            # What is missing because of it is not what is wrong.
            (["checkpoint", "step", "d", "--form", "x"],
             'unknown option "--form" (did you mean "--from"?). Try: relayctl checkpoint step --help'),
            (["status", "-x"], 'unknown option "-x". Try: relayctl status --help'),
        ):
            self.assertEqual(said, self.refused(*words), words)

    def test_a_word_too_many_and_a_word_too_few(self):
        self.assertEqual('unexpected argument "b"; `relayctl tree` takes [NODE] and nothing else. Try: relayctl tree --help',
                         self.refused("tree", "a", "b"))
        self.assertEqual('unexpected argument "x"; `relayctl versions` takes no argument. Try: relayctl versions --help',
                         self.refused("versions", "x"))
        self.assertEqual("DIR is required. Try: relayctl publish --help", self.refused("publish"))
        self.assertEqual("--from is required. Try: relayctl checkpoint step --help", self.refused("checkpoint", "step", "d"))

    def test_a_value_that_is_none_of_the_choices(self):
        for words, said in (
            (["-o", "jsn", "status"], '--output: "jsn" is not text, wide, json or name (did you mean "json"?)'),
            (["-o", "yaml", "status"], '--output: "yaml" is not text, wide, json or name'),
            (["wait", "commited"], 'GOAL: "commited" is not committed, converged or healthy (did you mean "committed"?)'),
            (["plan", "show", "f", "--as", "tee"], '--as: "tee" is not tree, dot or json (did you mean "tree"?)'),
        ):
            self.assertEqual(said, self.refused(*words).rsplit(". Try: ", 1)[0], words)
        self.assertIn('(did you mean "idle"?)', self.refused("nodes", "--state", "IDEL"))

    def test_a_number_is_plain_decimal_and_within_its_range(self):
        whole = "give one from 0 to 18446744073709551615"
        make = ["checkpoint", "make", "d", "--size", "1MiB", "--seed"]
        for words, said in (
            ([*make, "-1"], f'--seed: "-1" is not a plain decimal number; {whole}'),
            ([*make, "+1"], f'--seed: "+1" is not a plain decimal number; {whole}'),
            ([*make, ""], f'--seed: "" is empty; {whole}'),
            ([*make, "1.5"], f'--seed: "1.5" is not a whole decimal number; {whole}'),
            ([*make, "0x10"], f'--seed: "0x10" is not a whole decimal number; {whole}'),
            ([*make, "010"], f'--seed: "010" has a leading zero; write it without; {whole}'),
            ([*make, "18446744073709551616"], f'--seed: "18446744073709551616" is too large; {whole}'),
            ([*make, "1", "--threads", "0"], '--threads: "0" is out of range; give one from 1 to 64'),
            ([*make, "1", "--shards=-3"], '--shards: "-3" is not a plain decimal number; give one from 1 to 100000'),
            (["checkpoint", "step", "d", "--from", "x", "--seed", "1", "--change", "3"],
             '--change: "3" is more than 100%; for 3 in a hundred write 3%'),
            (["checkpoint", "step", "d", "--from", "x", "--seed", "1", "--change=-3%"],
             '--change: "-3%" is not a share; write for example 95% or 0.95'),
            (["delta", "encode", "a", "b", "-o", "f", "--version", "-2"],
             '--version: "-2" is not a plain decimal number; give one from 1 to 18446744073709551615'),
            (["tree", "--depth", "-1"], '--depth: "-1" is not a plain decimal number; give one from 0 to 1000000'),
            (["cert", "issue", "--ca", "a", "--node", "n", "--out", "o", "--days", "0"],
             '--days: "0" is out of range; give one from 1 to 3650'),
        ):
            self.assertEqual(said, self.refused(*words).rsplit(". Try: ", 1)[0], words)
        self.assertEqual([], list(self.dir.iterdir()))

    def test_controls_in_a_word_do_not_reach_the_terminal(self):
        self.assertIn(r'unknown command "st\x1b[31matus"', self.refused("st\x1b[31matus"))

    def test_with_o_json_an_error_is_a_document_too(self):
        run = self.relayctl("-o", "json", "--socket", self.dir / "admin.sock", "status", expect=4)
        self.assertEqual({
            "schema": "deltarelay.error/1",
            "what": f"cannot reach relayd at {self.dir}/admin.sock",
            "why": "no such file, so relayd does not run or listens elsewhere",
            "try": "start relayd, or --socket PATH, as admin.socket in relayd.yaml has it",
            "exit_code": 4,
        }, run.json)
        self.assertIn(run.json["what"], run.err)
        self.assertEqual(2, self.relayctl("-o", "json", "stauts", expect=2).json["exit_code"])

    def test_with_o_json_an_answer_stays_the_only_document(self):
        self.relayctl("cert", "init-ca", "ca", "--mesh", "m")
        for node in ("a", "b"):
            self.relayctl("cert", "issue", "--ca", "ca", "--node", node, "--out", node)
        run = self.relayctl("-o", "json", "cert", "check", "--cert", "a/node.crt", "--key", "b/node.key", "--ca", "ca/ca.crt",
                            expect=3)
        self.assertEqual("deltarelay.certificate-check/1", run.json["schema"])


if __name__ == "__main__":
    relayctl_case.main()
