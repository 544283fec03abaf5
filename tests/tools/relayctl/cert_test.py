"""relayctl cert: made files are good, bad ones are named with exit 3, and nothing is ever overwritten."""
import os
import ssl
import stat
import subprocess

from relayctl_case import RelayctlCase, main


class CertTest(RelayctlCase):
    def make(self, mesh="prod", node="hel-01", *options):
        self.relayctl("cert", "init-ca", "ca", "--mesh", mesh)
        self.relayctl("cert", "issue", "--ca", "ca", "--node", node, "--role", "relay", "--out", "node", *options)

    def check(self, cert="node/node.crt", key="node/node.key", ca="ca/ca.crt", expect=0):
        return self.relayctl("cert", "check", "--cert", cert, "--key", key, "--ca", ca, "-o", "json", expect=expect)

    def codes(self, run):
        return [finding["code"] for finding in run.json["findings"]]

    def test_issued_files_are_good_for_their_node_and_private_keys_are_private(self):
        self.make()
        run = self.check()
        self.assertTrue(run.json["ok"])
        self.assertEqual(run.json["uri"], "deltarelay://prod/relay/hel-01")
        for path in ("ca/ca.key", "ca/content.key", "node/node.key"):
            self.assertEqual(stat.S_IMODE(os.stat(self.dir / path).st_mode), 0o600, path)

    def test_openssl_accepts_the_chain(self):
        self.make()
        done = subprocess.run(
            ["openssl", "verify", "-x509_strict", "-CAfile", "ca/ca.crt", "node/node.crt"],
            cwd=self.dir, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.dir / "node/node.crt", self.dir / "node/node.key")

    def test_nothing_is_overwritten(self):
        self.make()
        before = {p: p.read_bytes() for p in self.dir.rglob("*") if p.is_file()}
        self.relayctl("cert", "init-ca", "ca", "--mesh", "other", expect=6)
        self.relayctl("cert", "issue", "--ca", "ca", "--node", "b", "--role", "relay", "--out", "node", expect=6)
        self.assertEqual(before, {p: p.read_bytes() for p in self.dir.rglob("*") if p.is_file()})

    def test_one_leftover_file_keeps_the_others_from_being_made(self):
        (self.dir / "ca").mkdir()
        (self.dir / "ca/content.pub").write_text("mine")
        run = self.relayctl("cert", "init-ca", "ca", "--mesh", "prod", expect=6)
        self.assertIn("content.pub", run.err)
        self.assertEqual([p.name for p in (self.dir / "ca").iterdir()], ["content.pub"])

    def test_inspect_tells_node_authority_and_validity(self):
        self.make("prod", "hel-01", "--days", "7")
        node = self.relayctl("cert", "inspect", "node/node.crt", "-o", "json").json
        self.assertEqual(node["schema"], "deltarelay.certificate/1")
        self.assertEqual((node["mesh"], node["role"], node["node"]), ("prod", "relay", "hel-01"))
        self.assertEqual((node["is_ca"], node["state"], node["dns_names"]), (False, "valid", ["hel-01"]))
        authority = self.relayctl("cert", "inspect", "ca/ca.crt", "-o", "json").json
        self.assertEqual((authority["is_ca"], authority["mesh"]), (True, "prod"))
        text = self.relayctl("cert", "inspect", "node/node.crt").out
        self.assertRegex(text, r"node +hel-01\n")
        self.assertRegex(text, r"valid until +\d{4}-\d\d-\d\dT.*left\n")

    def test_soon_expiring_certificates_are_good_with_a_warning(self):
        self.make("prod", "hel-01", "--days", "7")
        run = self.relayctl("cert", "check", "--cert", "node/node.crt", "--key", "node/node.key", "--ca", "ca/ca.crt")
        self.assertIn("warning: node/node.crt expires in", run.err)

    def test_another_meshes_authority_is_found_with_exit_3(self):
        self.make()
        self.relayctl("cert", "init-ca", "other", "--mesh", "stage")
        run = self.check(ca="other/ca.crt", expect=3)
        self.assertEqual(self.codes(run), ["unknown_ca", "wrong_mesh"])
        self.assertIn("try", run.err.lower())

    def test_an_authority_of_the_same_mesh_name_is_still_another(self):
        self.make()
        self.relayctl("cert", "init-ca", "other", "--mesh", "prod")
        self.assertIn("unknown_ca", self.codes(self.check(ca="other/ca.crt", expect=3)))

    def test_two_authorities_in_one_file_are_a_rotation(self):
        self.make()
        self.relayctl("cert", "init-ca", "new", "--mesh", "prod")
        both = (self.dir / "new/ca.crt").read_bytes() + (self.dir / "ca/ca.crt").read_bytes()
        (self.dir / "both.crt").write_bytes(both)
        self.check(ca="both.crt")

    def test_anothers_key_is_found_with_exit_3(self):
        self.make()
        self.relayctl("cert", "issue", "--ca", "ca", "--node", "b", "--role", "relay", "--out", "b")
        self.assertEqual(self.codes(self.check(key="b/node.key", expect=3)), ["key_mismatch"])

    def openssl(self, *args):
        done = subprocess.run(["openssl", *args], cwd=self.dir, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def foreign_node(self, extensions, dates=()):
        """A node's certificate that `cert issue` would not make, by the mesh's own authority."""
        self.relayctl("cert", "init-ca", "ca", "--mesh", "prod")
        (self.dir / "ext").write_text(extensions)
        (self.dir / "ca.conf").write_text(
            "[ca]\ndefault_ca=d\n[d]\nnew_certs_dir=.\ndatabase=index.txt\nserial=serial\ndefault_md=sha256\n"
            "policy=p\n[p]\ncommonName=supplied\n")
        (self.dir / "index.txt").write_text("")
        (self.dir / "serial").write_text("01\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "x.key",
                     "-out", "x.csr", "-subj", "/CN=x")
        self.openssl("ca", "-batch", "-notext", "-config", "ca.conf", "-cert", "ca/ca.crt", "-keyfile", "ca/ca.key",
                     "-in", "x.csr", "-out", "x.crt", "-extfile", "ext", *(dates or ("-days", "10")))
        return self.check(cert="x.crt", key="x.key", expect=3)

    GOOD_NAMES = "subjectAltName=URI:deltarelay://prod/relay/x,DNS:x\nextendedKeyUsage=serverAuth,clientAuth\n"

    def test_an_expired_certificate_is_found_with_its_date(self):
        run = self.foreign_node(self.GOOD_NAMES, ("-startdate", "20200101000000Z", "-enddate", "20200201000000Z"))
        self.assertEqual(self.codes(run), ["expired"])
        self.assertIn("2020-02-01T00:00:00Z", run.err)
        self.assertEqual(run.json["state"], "expired")

    def test_a_certificate_of_the_future_is_found_with_its_date(self):
        run = self.foreign_node(self.GOOD_NAMES, ("-startdate", "20900101000000Z", "-enddate", "20910101000000Z"))
        self.assertEqual(self.codes(run), ["not_yet_valid"])

    def test_a_certificate_without_identity_is_found(self):
        run = self.foreign_node("subjectAltName=DNS:x\nextendedKeyUsage=serverAuth,clientAuth\n")
        self.assertEqual(self.codes(run), ["no_identity"])

    def test_a_certificate_of_another_mesh_is_found(self):
        run = self.foreign_node(self.GOOD_NAMES.replace("prod", "stage"))
        self.assertEqual(self.codes(run), ["wrong_mesh"])

    def test_a_certificate_for_servers_alone_is_found(self):
        run = self.foreign_node(self.GOOD_NAMES.replace(",clientAuth", ""))
        self.assertEqual(self.codes(run), ["bad_certificate"])

    def test_files_that_are_no_certificates_are_refused_with_exit_3(self):
        self.make()
        (self.dir / "empty").write_bytes(b"")
        (self.dir / "junk").write_bytes(os.urandom(5000))
        whole = (self.dir / "node/node.crt").read_bytes()
        (self.dir / "cut").write_bytes(whole[: len(whole) // 2])
        for bad in ("empty", "junk", "cut", "node/node.key"):
            self.assertIn(bad, self.relayctl("cert", "inspect", bad, expect=3).err)
            self.relayctl("cert", "check", "--cert", bad, "--key", "node/node.key", "--ca", "ca/ca.crt", expect=3)
            self.relayctl("cert", "check", "--cert", "node/node.crt", "--key", "node/node.key", "--ca", bad, expect=3)
        for bad in ("empty", "junk", "cut", "node/node.crt"):
            self.relayctl("cert", "check", "--cert", "node/node.crt", "--key", bad, "--ca", "ca/ca.crt", expect=3)

    def test_missing_files_are_a_failure_and_not_bad_certificates(self):
        self.relayctl("cert", "inspect", "absent", expect=1)
        self.relayctl("cert", "issue", "--ca", "absent", "--node", "n", "--role", "relay", "--out", "n", expect=1)
        self.assertFalse((self.dir / "n").exists())

    def test_wrong_arguments_are_usage_errors_and_leave_nothing_behind(self):
        self.relayctl("cert", "init-ca", "ca", "--mesh", "prod")
        for node, role, days in (("a/b", "relay", 1), ("..", "relay", 1), ("a", "boss", 1), ("a", "relay", 0),
                                 ("a", "relay", 100000), ("", "relay", 1)):
            self.relayctl("cert", "issue", "--ca", "ca", "--node", node, "--role", role, "--out", "n", "--days", days,
                          expect=2)
        self.relayctl("cert", "init-ca", "x", "--mesh", "a b", expect=2)
        self.relayctl("cert", expect=2)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["ca"])


if __name__ == "__main__":
    main()
