"""A parent that lies: a rogue with a genuine certificate takes the place of a relay's parent and says what no parent may say.

    root -> mid -> leaf        the rogue plays mid, on mid's address, with mid's certificate; leaf is a real daemon

It has no content key, so its weapons are genuine records, taken from mid's own log and cut, altered, or sent where they do not
belong. Whatever it sends: leaf's image stays the version that leaf states, leaf lives and says why, and afterwards the real mid
brings leaf to the newest version.
"""
import sys
from dataclasses import replace

import safetensors_py as st
import toy_model
import wire
from fleet import FleetCase, e2e_main


class BadFrames(FleetCase):
    def scene(self):
        """leaf at v1; root and mid at v3, and mid stopped. Returns the fleet with the contents of each version."""
        fleet = self.make_fleet({"us": ["root"], "eu": ["mid"], "ap": ["leaf"]}, chain=True, policy="quorum", quorum="0.6")
        contents = {1: toy_model.make(seed=1)}
        fleet.put_image("root", contents[1])
        fleet.start_all()
        fleet.wait_converged(1)
        self.assertEqual("mid", fleet.root.row("leaf")["actual_parent"])
        self.assertEqual(0, fleet["leaf"].stop())
        for version in (2, 3):
            contents[version] = toy_model.step(contents[version - 1], 0.03, seed=version)
            fleet.publish(fleet.export(f"v{version}", contents[version]))  # --wait would wait for leaf a while
            fleet.wait_converged(version, names=["root", "mid"])
        self.assertEqual(0, fleet["mid"].stop())
        # The root is gone too: leaf must not be able to go round the rogue.
        self.assertEqual(0, fleet.root.stop())
        self.records = {version: wire.records_of_log(fleet["mid"].state, version) for version in (2, 3)}
        self.assertEqual(wire.BEGIN, self.records[2][0].type)
        self.assertEqual(wire.COMMIT, self.records[2][-1].type)
        self.assertGreater(sum(record.type == wire.FRAME for record in self.records[2]), 3)
        self.assertEqual("1", fleet["leaf"].marker()["version"])
        return fleet, contents

    def attack(self, act, names_reason=None):
        """Lets `act(peer)` loose on leaf once leaf has attached, waits for leaf to have dealt with it, and checks that all is well."""
        fleet, contents = self.scene()
        leaf = fleet["leaf"]
        with wire.RogueParent(fleet["mid"].listen, fleet["mid"].tls) as rogue:
            leaf.start()
            leaf.wait_ready()
            peer, mesh, hello = rogue.accept()
            self.assertEqual(("leaf", 1), (hello.node, hello.committed))
            peer.send(wire.welcome(mesh, "mid", hello.rank - 1, max(1, hello.epoch), 1, hello.image))
            act(peer)
            peer.finish()
            # Leaf has dealt with all that was sent when it attaches anew.
            again, _, hello = rogue.accept()
            again.close()
            self.assertEqual(1, hello.committed)
            self.check_untouched(leaf, contents[1])
            if names_reason:
                self.assertRegex(leaf.log_text(), names_reason)
        self.recover(fleet, contents)

    def check_untouched(self, leaf, tensors):
        self.assertTrue(leaf.alive(), leaf.log_tail())
        self.assertEqual("1", leaf.marker()["version"])
        self.assertIsNone(st.difference(tensors, st.read_checkpoint(leaf.image)))

    def recover(self, fleet, contents):
        fleet["mid"].start()
        fleet.root.start()
        fleet.wait_converged(3)
        fleet.assert_images(contents[3])

    def frames(self, version):
        return [record for record in self.records[version] if record.type == wire.FRAME]

    def test_a_frame_cut_off_in_the_middle_changes_nothing(self):
        def act(peer):
            frame = self.frames(2)[0]
            peer.send(self.records[2][0], frame.pack()[:wire.RECORD_HEAD_BYTES + len(frame.payload) // 2])
        self.attack(act)

    def test_a_frame_with_a_flipped_bit_is_refused_by_name(self):
        def act(peer):
            peer.send(self.records[2][0], wire.altered_payload(self.frames(2)[0]))
            peer.receive_end()
        self.attack(act, "(?i)FRAME_REJECTED|sha-?256")

    def test_a_forged_frame_whose_sha256_fits_is_refused_by_its_signature(self):
        def act(peer):
            peer.send(self.records[2][0], wire.forged(self.frames(2)[0]))
            peer.receive_end()
        self.attack(act, "(?i)signature")

    def test_an_unsigned_frame_is_refused(self):
        def act(peer):
            peer.send(self.records[2][0], replace(self.frames(2)[0], flags=0, signature=bytes(64)))
            peer.receive_end()
        self.attack(act, "(?i)FRAME_REJECTED|signature|signed")

    def test_a_refit_of_another_base_is_not_applied(self):
        def act(peer):
            peer.send(*self.records[3][:-1])  # v3 goes from v2, leaf holds v1; all but the commit
        self.attack(act)

    def test_a_commit_without_frames_commits_nothing(self):
        def act(peer):
            peer.send(self.records[2][0], self.records[2][-1])
        self.attack(act)

    def test_a_length_past_every_limit_ends_the_link(self):
        def act(peer):
            peer.send(self.frames(2)[0].pack(payload_bytes=0xFFFFFFFF))
            peer.receive_end()
        self.attack(act)

    def test_an_older_epoch_is_fenced(self):
        fleet, contents = self.scene()
        leaf = fleet["leaf"]
        with wire.RogueParent(fleet["mid"].listen, fleet["mid"].tls) as rogue:
            leaf.start()
            leaf.wait_ready()
            peer, mesh, hello = rogue.accept()
            self.assertGreater(hello.epoch, 0)
            peer.send(wire.welcome(mesh, "mid", hello.rank - 1, hello.epoch - 1, 1, hello.image))
            said = peer.receive_end()
            peer.close()
            self.assertIn(b"FENCED", said or b"")
            self.check_untouched(leaf, contents[1])
        self.recover(fleet, contents)


if __name__ == "__main__":
    sys.exit(e2e_main())
