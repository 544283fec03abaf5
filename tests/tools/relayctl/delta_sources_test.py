"""relayctl delta on checkpoints that are odd, wrong, or changed while they are read."""
import json
import os
import pathlib
import struct
import subprocess
import threading

from relayctl_case import DATA, RELAYCTL, RelayctlCase, main, tree_bytes


class OddCheckpoints(RelayctlCase):
    """Every file of tests/data/odd-safetensors as a checkpoint."""

    MANIFEST = json.loads((DATA / "odd-safetensors/manifest.json").read_text())["cases"]

    def test_files_that_are_valid_travel_bit_for_bit(self):
        for case in self.MANIFEST:
            if case["product"] != "accept":
                continue
            with self.subTest(case["file"]):
                name = pathlib.Path(case["file"]).stem
                old = (DATA / "odd-safetensors" / case["file"]).read_bytes()
                data_at = 8 + struct.unpack("<Q", old[:8])[0]
                new = old[:data_at] + bytes(b ^ 0x81 for b in old[data_at:])
                for which, content in (("base", old), ("new", new)):
                    directory = self.dir / f"{name}-{which}"
                    directory.mkdir()
                    (directory / "model.safetensors").write_bytes(content)
                delta = f"{name}.delta"
                self.relayctl("delta", "encode", f"{name}-base", f"{name}-new", "-o", delta)
                self.relayctl("delta", "apply", delta, f"{name}-base")
                self.assertEqual((self.dir / f"{name}-base/model.safetensors").read_bytes(), new)

    def test_files_that_are_not_are_refused_by_name_everywhere(self):
        good = self.checkpoint("good", {"w": ("U8", [1], b"x")})
        self.relayctl("delta", "encode", "good", "good", "-o", "good.delta")
        for case in self.MANIFEST:
            if case["product"] == "accept":
                continue
            with self.subTest(case["file"]):
                directory = self.dir / pathlib.Path(case["file"]).stem
                directory.mkdir()
                (directory / "model.safetensors").write_bytes(
                    (DATA / "odd-safetensors" / case["file"]).read_bytes())
                before = tree_bytes(directory)
                run = self.relayctl("delta", "encode", directory, "good", "-o", "x.delta", expect=3)
                self.assertIn("model.safetensors", run.err)
                self.relayctl("delta", "encode", "good", directory, "-o", "x.delta", expect=3)
                self.relayctl("delta", "stats", "good", directory, expect=3)
                self.relayctl("delta", "apply", "good.delta", directory.name, expect=3)
                self.assertEqual(tree_bytes(directory), before)
        self.assertFalse((self.dir / "x.delta").exists())


class ChangedWhileRead(RelayctlCase):
    """The output's temporary name is made a pipe: encode stands still in the middle, and goes on when it is read."""

    def encode_while(self, change):
        noise = os.urandom(1 << 20)
        self.checkpoint("base", {"a": ("U8", [1 << 20], noise)})
        new = self.checkpoint("new", {"a": ("U8", [1 << 20], bytes(reversed(noise)))})
        os.mkfifo(self.dir / "step.delta.partial")
        result = []
        runner = threading.Thread(target=lambda: result.append(self.run_encode()))
        runner.start()
        with open(self.dir / "step.delta.partial", "rb") as pipe:  # opened on both sides: BASE and NEW are open by now
            change(new / "model.safetensors")
            while pipe.read(1 << 16):
                pass
        runner.join()
        self.assertFalse((self.dir / "step.delta").exists())
        return result[0]

    def run_encode(self):
        return subprocess.run([RELAYCTL, "delta", "encode", "base", "new", "-o", "step.delta", "--threads", "1"],
                              cwd=self.dir, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)

    def check_refused(self, done):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"model.safetensors: file changed while it was read", done.stderr)

    def test_a_byte_written_meanwhile_is_noticed(self):
        def change(path):
            with open(path, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"!")
        self.check_refused(self.encode_while(change))

    def test_a_file_cut_off_meanwhile_is_noticed_and_no_signal_ends_the_program(self):
        self.check_refused(self.encode_while(lambda path: os.truncate(path, 1000)))

    def test_a_file_replaced_meanwhile_is_noticed(self):
        def change(path):
            other = path.with_suffix(".tmp")
            other.write_bytes(path.read_bytes())
            os.rename(other, path)
        self.check_refused(self.encode_while(change))


if __name__ == "__main__":
    main()
