"""What the tests of relayctl's offline commands share: running the built program, and checkpoints made byte by byte.

The program's path comes in RELAYCTL. Each test has a directory of its own, removed at the end; each run is bounded.
Only the standard library is used, so that the tests run wherever the build does.
"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

RELAYCTL = os.environ["RELAYCTL"]
DATA = pathlib.Path(os.environ["DELTARELAY_TEST_DATA"])
RUN_SECONDS_MAX = 60


def safetensors(tensors, metadata=None):
    """The bytes of a file. `tensors`: name -> (dtype, shape, bytes)."""
    header, at = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def bf16_weights(count, seed):
    """Normal weights as BF16, sigma 0.02: the exponents that a model's weights have."""
    rng = random.Random(seed)
    out = bytearray()
    for _ in range(count):
        out += struct.pack("<f", rng.gauss(0, 0.02))[2:]
    return bytes(out)


def stepped(data, change, seed, width=2):
    """`data` with a share of its elements one step up or down, as training does."""
    rng = random.Random(seed)
    out = bytearray(data)
    mask = (1 << (8 * width)) - 1
    for at in range(0, len(out) - width + 1, width):
        if rng.random() < change:
            value = int.from_bytes(out[at:at + width], "little") + rng.choice((-1, 1))
            out[at:at + width] = (value & mask).to_bytes(width, "little")
    return bytes(out)


def tree_bytes(directory):
    """What an image consists of: name -> content, without the files that are ours."""
    return {
        path.name: path.read_bytes()
        for path in sorted(pathlib.Path(directory).iterdir())
        if not path.name.startswith(".") and not path.name.startswith("deltarelay.")
    }


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Run:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self):
        return json.loads(self.out)


class RelayctlCase(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="relayctl-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def relayctl(self, *args, expect=0):
        """Runs it in the test's directory and checks its exit code, and that errors are said as errors."""
        done = subprocess.run(
            [RELAYCTL, *map(str, args)],
            cwd=self.dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_SECONDS_MAX,
            env={"PATH": os.environ["PATH"], "TZ": "UTC"},
        )
        run = Run(done)
        self.assertEqual(run.code, expect, f"relayctl {args}\nstdout: {run.out}\nstderr: {run.err}")
        if expect != 0:
            self.assertIn("error: ", run.err)
        return run

    def checkpoint(self, name, tensors, companions=None, shards=1):
        """A directory: `tensors` over so many shards (with an index when more than one), and small files."""
        directory = self.dir / name
        directory.mkdir()
        if shards == 1:
            (directory / "model.safetensors").write_bytes(safetensors(tensors))
        else:
            names = list(tensors)
            weight_map = {}
            for shard in range(shards):
                file_name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
                mine = names[shard::shards]
                (directory / file_name).write_bytes(safetensors({n: tensors[n] for n in mine}))
                weight_map.update({n: file_name for n in mine})
            index = {"metadata": {}, "weight_map": weight_map}
            (directory / "model.safetensors.index.json").write_text(json.dumps(index))
        for file_name, content in (companions or {}).items():
            (directory / file_name).write_bytes(content)
        return directory

    def copy(self, source, name):
        return pathlib.Path(shutil.copytree(source, self.dir / name))


def main():
    unittest.main(verbosity=2)
