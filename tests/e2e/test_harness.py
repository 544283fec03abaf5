"""The judge is judged first: the reader, the toy model and the proxy, against data that they did not make."""
import hashlib
import json
import socket
import sys
import tempfile
import time
import unittest
from pathlib import Path

import safetensors_py as st
import toy_model
import wire
from byte_proxy import ByteProxy
from fleet import e2e_main
from version_watch import VersionWatch

FORMAT = Path(__file__).resolve().parents[2] / "codec" / "FORMAT.md"
ODD = Path(__file__).resolve().parent.parent / "data" / "odd-safetensors"


class Reader(unittest.TestCase):
    def cases(self, product):
        return [case for case in json.loads((ODD / "manifest.json").read_text())["cases"] if case["product"] == product]

    def test_every_valid_odd_file_has_the_tensors_of_the_manifest(self):
        cases = self.cases("accept")
        self.assertGreater(len(cases), 5)
        for case in cases:
            with self.subTest(case["file"]):
                tensors = st.read_file(ODD / case["file"])
                self.assertEqual({t["name"] for t in case["tensors"]}, set(tensors))
                for told in case["tensors"]:
                    tensor = tensors[told["name"]]
                    self.assertEqual((told["dtype"], told["shape"]), (tensor.dtype, list(tensor.shape)))
                    self.assertEqual(told["sha256"], hashlib.sha256(tensor.data).hexdigest())

    def test_every_invalid_odd_file_that_can_hide_damage_is_refused(self):
        for case in self.cases("reject"):
            with self.subTest(case["file"]), self.assertRaises(st.BadFile):
                st.read_file(ODD / case["file"])

    def test_what_is_written_is_read_back_whatever_the_shards(self):
        tensors = toy_model.make(seed=3)
        for shards, pad_to in ((1, 8), (3, 1), (5, 4096)):
            with self.subTest(shards=shards), tempfile.TemporaryDirectory() as directory:
                st.write_checkpoint(directory, tensors, shards, pad_to=pad_to)
                self.assertIsNone(st.difference(tensors, st.read_checkpoint(directory)))
                with st.MappedCheckpoint(directory) as mapped:
                    for name, tensor in tensors.items():
                        self.assertEqual(tensor.data, b"".join(mapped.pieces(name, 65536)))

    def test_one_flipped_bit_is_found_and_named(self):
        tensors = toy_model.make(seed=4)
        data = bytearray(tensors["lm_head.weight"].data)
        data[4711] ^= 0x10
        other = dict(tensors, **{"lm_head.weight": st.Tensor("BF16", tensors["lm_head.weight"].shape, bytes(data))})
        self.assertRegex(st.difference(tensors, other), "lm_head.weight differs at byte 4711")

    def test_a_step_changes_the_share_that_was_asked_for(self):
        tensors = toy_model.make(seed=5)
        for rate in (0.01, 0.05):
            share = toy_model.changed_share(tensors, toy_model.step(tensors, rate, seed=6))
            self.assertAlmostEqual(rate, share, delta=0.0005)


class FakeHost:
    """A directory with a marker and a row, which may lie."""
    name = "fake"

    def __init__(self, image, marker, row):
        self.image, self._marker, self._row = Path(image), marker, row

    def marker(self):
        return self._marker

    def row(self, seconds=0):
        return self._row


class Watch(unittest.TestCase):
    def words(self, marker, row, content=None):
        tensors = toy_model.make(seed=8)
        with tempfile.TemporaryDirectory() as directory:
            st.write_checkpoint(directory, content or tensors)
            watch = VersionWatch(None)
            watch.contents[7] = tensors
            watch.look(FakeHost(directory, marker, row))
            return watch

    def test_a_true_word_is_judged_and_kept_silent(self):
        watch = self.words({"version": "7", "state": "committed"}, {"version": "7", "state": "IDLE"})
        self.assertEqual((2, []), (watch.judged, watch.false_words))

    def test_a_false_word_in_either_place_is_found(self):
        other = toy_model.step(toy_model.make(seed=8), 0.0001, seed=9)
        self.assertRegex(self.words({"version": "7", "state": "committed"}, {}, other).false_words[0], "deltarelay.json says v7")
        self.assertRegex(self.words({}, {"version": "7", "state": "IDLE"}, other).false_words[0], "its row says v7")
        self.assertRegex(self.words({"version": "8", "state": "committed"}, {}).false_words[0], "v8 was never published")

    def test_nothing_is_held_against_a_host_that_states_nothing(self):
        other = toy_model.step(toy_model.make(seed=8), 0.5, seed=9)
        watch = self.words({"version": "7", "state": "applying"}, {"version": "7", "state": "RECEIVING"}, other)
        self.assertEqual((0, []), (watch.judged, watch.false_words))


class Wire(unittest.TestCase):
    def test_the_worked_example_of_the_format_is_read_and_written_again(self):
        text = FORMAT.read_text().split("```hex record", 1)[1].split("```", 1)[0]
        example = b"".join(bytes.fromhex(line.split("   ")[0]) for line in text.strip().splitlines())
        record, end = wire.unpack(example)
        self.assertEqual(len(example), end)
        self.assertEqual((wire.FRAME, 14, 1843, 1, 77), (record.type, record.epoch, record.version, record.stripe, record.sequence))
        self.assertEqual(hashlib.sha256(record.payload).digest(), record.sha256)
        self.assertEqual(example, record.pack())
        self.assertNotEqual(record.sha256, hashlib.sha256(wire.altered_payload(record).payload).digest())
        self.assertEqual(wire.forged(record).sha256, hashlib.sha256(wire.forged(record).payload).digest())


class Proxy(unittest.TestCase):
    def echo_through(self, delay):
        with socket.create_server(("127.0.0.1", 0)) as server, ByteProxy(server.getsockname(), delay_seconds=delay) as proxy:
            with socket.create_connection(proxy.address, timeout=10) as client:
                inside, _ = server.accept()
                with inside:
                    payload = bytes(range(256)) * 4096
                    begin = time.monotonic()
                    client.sendall(payload)
                    client.shutdown(socket.SHUT_WR)
                    received = b""
                    while piece := inside.recv(65536):
                        received += piece
                    self.assertEqual(payload, received)
                    return time.monotonic() - begin

    def test_bytes_pass_unchanged_and_not_before_their_delay(self):
        self.echo_through(0)
        self.assertGreaterEqual(self.echo_through(0.2), 0.2)

    def test_a_cut_ends_both_sides(self):
        with socket.create_server(("127.0.0.1", 0)) as server, ByteProxy(server.getsockname()) as proxy:
            with socket.create_connection(proxy.address, timeout=10) as client:
                inside, _ = server.accept()
                with inside:
                    client.sendall(b"x")
                    self.assertEqual(b"x", inside.recv(1))
                    proxy.cut()
                    self.assertEqual(b"", inside.recv(1))
                    self.assertEqual(b"", client.recv(1))


if __name__ == "__main__":
    sys.exit(e2e_main())
