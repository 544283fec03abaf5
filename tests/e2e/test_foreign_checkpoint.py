"""A checkpoint that nobody here wrote: the valid odd safetensors files, brought together by an index, as image and as export.

They have headers with other padding, order, escapes and white space than our writers make, scalars, empty tensors and unaligned data.
Hosts must end with the same tensors, and with files whose headers are the root's, byte for byte.
"""
import json
import shutil
import sys
import unittest
from pathlib import Path

import safetensors_py as st
from fleet import Fleet, e2e_main

ODD = Path(__file__).resolve().parent.parent / "data" / "odd-safetensors"


def assemble(directory):
    """Every "accept" file with at least one tensor; a name that several have belongs to the first."""
    directory.mkdir(parents=True)
    weight_map = {}
    for case in json.loads((ODD / "manifest.json").read_text())["cases"]:
        if case["product"] != "accept" or all(tensor["name"] in weight_map for tensor in case["tensors"]):
            continue
        shutil.copy(ODD / case["file"], directory)
        for tensor in case["tensors"]:
            weight_map.setdefault(tensor["name"], case["file"])
    (directory / st.INDEX_NAME).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return sorted(set(weight_map.values()))


def flip_data(directory, files):
    """Inverts every third byte of the data and leaves the headers as they are."""
    for name in files:
        head = len(st.header_bytes(directory / name))
        content = bytearray((directory / name).read_bytes())
        for at in range(head, len(content), 3):
            content[at] ^= 0xFF
        (directory / name).write_bytes(content)


class ForeignCheckpoint(unittest.TestCase):
    def test_files_of_another_writer_are_synced_and_refitted_with_their_headers(self):
        with Fleet({"us": ["root", "us-1"], "eu": ["eu-1"]}) as fleet:
            files = assemble(fleet.root.image)
            self.assertGreater(len(files), 4)
            export = fleet.directory / "export"
            shutil.copytree(fleet.root.image, export)
            flip_data(export, files)
            first, second = st.read_checkpoint(fleet.root.image), st.read_checkpoint(export)
            self.assertIsNotNone(st.difference(first, second))
            fleet.start_all()
            fleet.wait_converged(1)
            fleet.assert_images(first)
            fleet.publish(export, "--wait")
            fleet.wait_converged(2)
            fleet.assert_images(second)
            for host in fleet.hosts.values():
                for name in files:
                    self.assertEqual(st.header_bytes(ODD / name), st.header_bytes(host.image / name), f"{host.name}/{name}")


if __name__ == "__main__":
    sys.exit(e2e_main())
