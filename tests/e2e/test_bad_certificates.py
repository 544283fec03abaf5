"""relayd does not start, and says why in one line, when its own identity is wrong. `--check` says the same."""
import shutil
import sys

import toy_model
from fleet import BIN, FleetCase, e2e_main, relayctl, run


class BadCertificates(FleetCase):
    def fleet(self):
        fleet = self.make_fleet({"us": ["root", "us-1"]})
        fleet.put_image("root", toy_model.make(seed=1))
        return fleet

    def refused(self, host, names):
        for arguments in (("--config", host.config), ("--check", "--config", host.config)):
            ran = run(BIN / "relayd", *arguments, seconds=20)
            self.assertEqual(3, ran.code, ran)
            self.assertRegex(ran.out + ran.err, r"(?m)error: ", ran)
            self.assertRegex(ran.out + ran.err, names, ran)
        self.assertFalse(host.socket.exists())

    def test_the_configuration_of_the_harness_passes_the_check(self):
        for host in self.fleet().hosts.values():
            ran = run(BIN / "relayd", "--check", "--config", host.config)
            self.assertEqual(0, ran.code, ran)

    def test_no_certificate_no_start(self):
        fleet = self.fleet()
        (fleet["us-1"].tls / "node.crt").unlink()
        self.refused(fleet["us-1"], r"node\.crt")

    def test_the_key_of_another_certificate(self):
        fleet = self.fleet()
        shutil.copy(fleet.root.tls / "node.key", fleet["us-1"].tls / "node.key")
        self.refused(fleet["us-1"], r"node\.key|node\.crt")

    def test_a_certificate_of_another_authority(self):
        fleet = self.fleet()
        other = fleet.directory / "other-ca"
        relayctl("cert", "init-ca", other, "--mesh", fleet.mesh)
        shutil.copy(other / "ca.crt", fleet["us-1"].tls / "ca.crt")
        self.refused(fleet["us-1"], r"node\.crt|ca\.crt")

    def test_a_certificate_for_another_name(self):
        fleet = self.fleet()
        shutil.rmtree(fleet["us-1"].tls)
        fleet.issue("us-2", "relay", fleet["us-1"].tls)
        self.refused(fleet["us-1"], r"us-2")

    def test_a_certificate_of_another_role(self):
        fleet = self.fleet()
        shutil.rmtree(fleet["us-1"].tls)
        fleet.issue("us-1", "observer", fleet["us-1"].tls)
        self.refused(fleet["us-1"], r"observer")

    def test_a_mesh_that_is_not_the_certificates(self):
        fleet = self.fleet()
        topology = fleet["us-1"].directory / "topology.yaml"
        topology.write_text(topology.read_text().replace(f"mesh: {fleet.mesh}", "mesh: some-other-mesh"))
        self.refused(fleet["us-1"], r"some-other-mesh")

    def test_the_wrong_content_key_on_the_root(self):
        fleet = self.fleet()
        other = fleet.directory / "other-ca"
        relayctl("cert", "init-ca", other, "--mesh", fleet.mesh)
        config = fleet.root.config
        config.write_text(config.read_text().replace(str(fleet.ca / "content.key"), str(other / "content.key")))
        self.refused(fleet.root, r"content_key")

    def test_a_word_that_is_no_key_is_named_with_its_place(self):
        fleet = self.fleet()
        config = fleet["us-1"].config
        config.write_text(config.read_text().replace("state_dir:", "stat_dir:"))
        self.refused(fleet["us-1"], r'relayd\.yaml:\d+:\d+: error: .*stat_dir.*state_dir')


if __name__ == "__main__":
    sys.exit(e2e_main())
