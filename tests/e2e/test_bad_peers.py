"""Who may connect, and what a peer may say before it is cut off. Each peer here is a TLS client in Python against a real root.

Whatever it tries: it is turned away, the root lives and still serves a real child, and no image changes.
"""
import socket
import ssl
import struct
import sys
from dataclasses import replace
from pathlib import Path

import toy_model
import wire
from fleet import FleetCase, e2e_main, relayctl, until

REGIONS = {"us": ["root", "us-1"]}


class BadPeers(FleetCase):
    def fleet(self):
        fleet = self.make_fleet(REGIONS)
        self.tensors = toy_model.make(seed=1)
        fleet.put_image("root", self.tensors)
        fleet.root.start()
        fleet.root.wait_ready()
        return fleet

    def settled(self, fleet):
        """After the attack a real child is filled, and the root has not even noticed."""
        fleet["us-1"].start()
        fleet.wait_converged(1)
        fleet.assert_images(self.tensors)
        fleet.assert_all_alive()

    def attach(self, fleet, context, node, **changes):
        """Says Hello as `node` and returns the first answer that counts, or None when the root ended the connection."""
        try:
            peer = wire.connect(fleet.root.listen, context)
        except (ssl.SSLError, ConnectionError):
            return None
        try:
            peer.send(replace(wire.hello(changes.pop("mesh", wire.mesh_id(fleet.ca, fleet.mesh)), node), **changes))
            return peer.receive(wire.WELCOME, wire.CLOSING)
        except (EOFError, ConnectionError, ssl.SSLError):
            return None
        finally:
            peer.close()

    def certificate(self, fleet, node="us-1", role="relay"):
        directory = fleet.directory / f"cert-{node}"
        fleet.issue(node, role, directory)
        return wire.tls_context(False, directory, fleet.ca / "ca.crt")

    def test_a_planned_node_with_its_certificate_is_welcomed(self):
        fleet = self.fleet()  # the control: what the others are refused does work
        answer = self.attach(fleet, self.certificate(fleet), "us-1")
        self.assertIsNotNone(answer)
        self.assertEqual(wire.WELCOME, answer.type)
        self.settled(fleet)

    def test_a_peer_without_certificate_is_refused(self):
        fleet = self.fleet()
        self.assertIsNone(self.attach(fleet, wire.tls_context(False), "us-1"))
        self.settled(fleet)

    def test_a_certificate_of_another_authority_is_refused(self):
        fleet = self.fleet()
        other = fleet.directory / "other-ca"
        relayctl("cert", "init-ca", other, "--mesh", fleet.mesh)  # the same mesh name makes it no more ours
        relayctl("cert", "issue", "--ca", other, "--node", "us-1", "--role", "relay", "--out", fleet.directory / "foreign")
        self.assertIsNone(self.attach(fleet, wire.tls_context(False, fleet.directory / "foreign"), "us-1"))
        self.settled(fleet)

    def test_a_certificate_for_another_name_may_not_speak_as_a_node(self):
        fleet = self.fleet()
        answer = self.attach(fleet, self.certificate(fleet, node="us-9"), "us-1")
        self.assertTrue(answer is None or answer.type == wire.CLOSING, answer)
        self.settled(fleet)

    def test_an_observer_may_not_attach_as_a_child(self):
        fleet = self.fleet()
        answer = self.attach(fleet, self.certificate(fleet, role="observer"), "us-1")
        self.assertTrue(answer is None or answer.type == wire.CLOSING, answer)
        self.settled(fleet)

    def test_a_record_of_an_unknown_mesh_ends_the_link(self):
        fleet = self.fleet()
        answer = self.attach(fleet, self.certificate(fleet), "us-1", mesh=bytes(range(16)))
        self.assertTrue(answer is None or answer.type == wire.CLOSING, answer)
        self.settled(fleet)

    def test_messages_of_a_newer_release_are_passed_over_and_malformed_ones_end_the_link(self):
        fleet = self.fleet()
        mesh = wire.mesh_id(fleet.ca, fleet.mesh)
        peer = wire.connect(fleet.root.listen, self.certificate(fleet))
        peer.send(wire.hello(mesh, "us-1"))
        peer.receive(wire.WELCOME)
        peer.send(wire.Record(0x1fe, mesh, payload=b"of a newer release"), wire.Record(wire.SYNC_MANIFEST_REQUEST, mesh))
        peer.receive(wire.SYNC_MANIFEST)  # the link lives on behind the message that the root does not know
        results = struct.pack("<QI", 5, 0)  # news of a verification that nobody has asked for: none
        peer.send(wire.Record(wire.VERIFY_RESULTS, mesh, payload=results), wire.Record(wire.SYNC_MANIFEST_REQUEST, mesh))
        peer.receive(wire.SYNC_MANIFEST)
        peer.send(wire.Record(wire.VERIFY_RESULTS, mesh, payload=struct.pack("<QI", 5, 0xffffffff)))
        peer.receive_end()
        peer.close()
        self.settled(fleet)

    def test_bytes_that_are_no_record_end_the_link(self):
        fleet = self.fleet()
        peer = wire.connect(fleet.root.listen, self.certificate(fleet))
        peer.send(b"GET / HTTP/1.1\r\n\r\n" * 20)
        peer.receive_end()
        peer.close()
        self.settled(fleet)

    def test_plain_text_and_half_handshakes_do_not_keep_a_child_waiting(self):
        fleet = self.fleet()
        idle = [socket.create_connection(fleet.root.listen, timeout=20) for _ in range(60)]
        for number, connection in enumerate(idle):
            connection.sendall((b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01")[number % 3])
        self.settled(fleet)
        for connection in idle:  # each is closed by the root, within the handshake's time
            try:
                while connection.recv(4096):
                    pass
            except ConnectionError:
                pass
            connection.close()
        until("the descriptors to be given back", lambda: self.descriptors(fleet.root) < 60)

    def descriptors(self, host):
        return len(list(Path(f"/proc/{host.process.pid}/fd").iterdir()))


if __name__ == "__main__":
    sys.exit(e2e_main())
