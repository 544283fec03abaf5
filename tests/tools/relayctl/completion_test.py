"""The completion scripts, run by a real bash: what would Tab offer here?"""
import shutil
import subprocess
import unittest

import relayctl_case


@unittest.skipUnless(shutil.which("bash"), "no bash here")
class Completion(relayctl_case.RelayctlCase):
    def offered(self, *words):
        script = self.dir / "completion.bash"
        script.write_text(self.relayctl("completion", "bash").out)
        quoted = " ".join(f"'{word}'" for word in ("relayctl", *words))
        done = subprocess.run(
            ["bash", "-c", f"source '{script}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; "
                           "_relayctl; printf '%s\\n' \"${COMPREPLY[@]}\""],
            capture_output=True, timeout=relayctl_case.RUN_SECONDS_MAX, check=True)
        self.assertEqual(done.stderr, b"")
        return set(done.stdout.decode().split())

    def test_commands_and_their_subcommands(self):
        self.assertLessEqual({"status", "tree", "plan", "publish", "completion"}, self.offered(""))
        self.assertEqual(self.offered("ver"), {"version", "versions", "verify"})
        self.assertEqual(self.offered("plan", "v"), {"validate"})
        self.assertEqual(self.offered("completion", ""), {"bash", "zsh"})
        self.assertEqual(self.offered("wait", "c"), {"committed", "converged"})

    def test_options_of_the_command_and_the_global_ones(self):
        self.assertLessEqual({"--dry-run", "--wait", "--policy", "--socket"}, self.offered("publish", "--"))
        self.assertNotIn("--dry-run", self.offered("tree", "--"))
        self.assertEqual(self.offered("tree", "--prob"), {"--problems"})
        self.assertEqual(self.offered("status", "-o", "j"), {"json"})

    def test_the_value_of_a_global_option_is_no_command(self):
        self.assertEqual(self.offered("--socket", "plan", "stat"), {"status"})

    def test_files_are_left_to_the_shell(self):
        self.assertEqual(self.offered("publish", ""), set())

    def test_zsh_gets_the_same_through_its_own_loader(self):
        zsh = self.relayctl("completion", "zsh").out
        self.assertTrue(zsh.startswith("autoload -Uz +X compinit bashcompinit"))
        self.assertIn(self.relayctl("completion", "bash").out, zsh)

    def test_another_shell_is_a_usage_error(self):
        self.relayctl("completion", "fish", expect=2)
        self.relayctl("completion", expect=2)


if __name__ == "__main__":
    relayctl_case.main()
