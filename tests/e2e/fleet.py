"""A fleet of real daemons on one loopback address of its own: certificates, plan, configuration, start, kill, watch, clean-up.

    with Fleet({"us": ["root", "us-1"], "eu": ["eu-1"]}) as fleet:
        fleet.put_image("root", tensors)
        fleet.start_all()
        fleet.wait_converged(1)

Each fleet takes a 127.x.y.z at random, so that two runs side by side never meet. Everything lives in one temporary directory;
leaving the `with` block kills what still runs and removes it, and after a failure prints the end of every log first. A daemon
also dies with the test's process (PR_SET_PDEATHSIG), however that ends.
"""
import ctypes
import functools
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import safetensors_py as st

BIN = Path(os.environ.get("DELTARELAY_BIN", Path(__file__).resolve().parents[2] / "build" / "release" / "bin"))
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

CONFIG = """\
node: {node}
role: {role}
topology: topology.yaml
state_dir: state
image:
  dir: {image}
  block_size: {block_size}
tls: {{cert: tls/node.crt, key: tls/node.key, ca: tls/ca.crt}}
content_key:
  public: tls/content.pub
{private}{listen}admin:
  socket: {socket}
log:
  level: debug
limits:
  encode_threads: {encode_threads}
  apply_threads: 1
timeouts:
  heartbeat: 500ms
  dead: {dead}
  prepare: {prepare}
commit:
  policy: {policy}
  quorum: {quorum}
"""


def _die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Ran:
    """What a command said. `document` is its stdout as JSON."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    @property
    def document(self):
        return json.loads(self.out)

    def __str__(self):
        return f"$ {' '.join(map(str, self.command))}\nexit {self.code}\n{self.out}{self.err}"


def run(*command, seconds=60):
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL)
    return Ran(command, done.returncode, done.stdout, done.stderr)


def relayctl(*arguments, seconds=60, expect=0):
    """Runs relayctl and insists on its exit code; `expect=None` takes any."""
    ran = run(BIN / "relayctl", *arguments, seconds=seconds)
    if expect is not None and ran.code != expect:
        raise AssertionError(f"expected exit {expect}\n{ran}")
    return ran


def until(what, condition, seconds=30.0):
    """Asks again and again until `condition()` is true, and returns what it returned; never longer than `seconds`."""
    deadline, last = time.monotonic() + seconds, None
    while True:
        last = condition()
        if last:
            return last
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}; last seen: {last!r}")
        time.sleep(0.01)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, seconds):
        super().__init__("localhost", timeout=seconds)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Host:
    """One daemon's place: its directory, its addresses, and its process when it runs."""

    def __init__(self, fleet, name, region, role):
        self.fleet, self.name, self.region, self.role = fleet, name, region, role
        self.directory = fleet.directory / name
        self.image, self.state, self.tls = (self.directory / part for part in ("image", "state", "tls"))
        self.config, self.log, self.socket = (self.directory / part for part in ("relayd.yaml", "relayd.log", "admin.sock"))
        self.address = self.listen = None  # what the plan says, and where the daemon listens (apart only behind a proxy)
        self.process = None

    def start(self):
        assert self.process is None, f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([BIN / "relayd", "--config", self.config], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent, cwd=self.directory)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def get(self, target, seconds=10.0):
        """A document of the admin API; None while nobody answers."""
        connection = _UnixConnection(self.socket, seconds)
        try:
            connection.request("GET", target)
            response = connection.getresponse()
            body = response.read()
            return json.loads(body) if response.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def row(self, name=None, seconds=10.0):
        """A node's row as this daemon sees it; {} while nobody answers."""
        document = self.get("/v1/nodes", seconds) or {"nodes": []}
        return next((row for row in document["nodes"] if row["name"] == (name or self.name)), {})

    def marker(self):
        """deltarelay.json of the image; {} when it is not there."""
        try:
            return json.loads((self.image / "deltarelay.json").read_text())
        except FileNotFoundError:
            return {}

    def wait_ready(self, seconds=30.0):
        def answers():
            if not self.alive():
                raise AssertionError(f"{self.name} ended with {self.process.returncode}\n{self.log_tail()}")
            return self.get("/v1/status")
        return until(f"{self.name} to answer", answers, seconds)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, seconds=20.0):
        """SIGTERM; returns the exit code, which a caller may insist on."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self._ended(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not stop within {seconds:g} s of SIGTERM") from None

    def kill(self):
        """kill -9; what it wrote stays, since only the process dies."""
        self.signal(signal.SIGKILL)
        return self._ended(20.0)

    def _ended(self, seconds):
        code = self.process.wait(seconds)
        self.process = None
        return code

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_tail(self, lines=40):
        return "\n".join(self.log_text().splitlines()[-lines:])

    def ctl(self, *arguments, **options):
        return relayctl("--socket", self.socket, *arguments, **options)


class Fleet:
    """`plan`: region -> names; the first name of the first region is the root. `links`: (from, to), by default a chain from the
    root's region outwards when `chain`, else a star. `options` fill the fields of CONFIG."""

    def __init__(self, plan, chain=False, **options):
        self.plan, self.mesh = plan, "e2e-" + random.SystemRandom().randbytes(3).hex()
        self.options = {"block_size": "64KiB", "encode_threads": 1, "dead": "5s", "prepare": "60s", "policy": "all",
                        "quorum": "0.95", **options}
        regions = list(plan)
        self.links = list(zip(regions, regions[1:])) if chain else [(regions[0], region) for region in regions[1:]]
        # A Unix socket's path has at most 107 bytes, so a long TMPDIR is no place for one.
        base = tempfile.gettempdir() if len(tempfile.gettempdir()) < 50 else "/tmp"
        self.directory = Path(tempfile.mkdtemp(prefix="dr-", dir=base))
        try:
            self.hosts = {}
            for region, names in plan.items():
                for name in names:
                    self.hosts[name] = Host(self, name, region, "relay" if self.hosts else "root")
            self.root = next(iter(self.hosts.values()))
            self._take_addresses()
            self._make_certificates()
            self.write_plan()
            for host in self.hosts.values():
                self.write_config(host)
        except BaseException:
            self.close()
            raise

    def __getitem__(self, name):
        return self.hosts[name]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.show_logs()
        self.close()

    # --- making

    def _take_addresses(self):
        """A port of the kernel's choice on an address of our own, for each host. Nobody else picks this 127.x.y.z, and outgoing
        loopback connections come from 127.0.0.1, so a port stays free between this check and the daemon's bind."""
        pick = random.SystemRandom()
        ip = f"127.{pick.randrange(1, 255)}.{pick.randrange(256)}.{pick.randrange(1, 255)}"
        probes = [socket.create_server((ip, 0)) for _ in self.hosts]
        for host, probe in zip(self.hosts.values(), probes):
            host.address = host.listen = probe.getsockname()
        for probe in probes:
            probe.close()

    def _make_certificates(self):
        self.ca = self.directory / "ca"
        relayctl("cert", "init-ca", self.ca, "--mesh", self.mesh)
        for host in self.hosts.values():
            host.directory.mkdir()
            self.issue(host.name, host.role, host.tls)

    def issue(self, node, role, out):
        relayctl("cert", "issue", "--ca", self.ca, "--node", node, "--role", role, "--out", out)

    def topology_text(self):
        lines = [f"mesh: {self.mesh}", "plan_epoch: 1", "regions:"]
        lines += [f"  - {{name: {region}, lan_rate: 10Gbps}}" for region in self.plan]
        if self.links:
            lines += ["links:"] + [f"  - {{from: {a}, to: {b}, rate: 1Gbps, rtt: 20ms}}" for a, b in self.links]
        lines += ["hosts:"]
        lines += [f"  - {{name: {h.name}, region: {h.region}, address: '{h.address[0]}:{h.address[1]}'}}" for h in self.hosts.values()]
        return "\n".join(lines + [f"root: {self.root.name}", "refit: {size: 64MiB, change: 3%}"]) + "\n"

    def write_plan(self):
        for host in self.hosts.values():
            (host.directory / "topology.yaml").write_text(self.topology_text())

    def write_config(self, host, **options):
        private = f"  private: {self.ca / 'content.key'}\n" if host is self.root else ""
        listen = f"listen: '{host.listen[0]}:{host.listen[1]}'\n" if host.listen != host.address else ""
        host.config.write_text(CONFIG.format(**{**self.options, **options}, node=host.name, role=host.role, image=host.image,
                                             socket=host.socket, private=private, listen=listen))

    def behind(self, host, make_proxy):
        """Puts a proxy before `host`: the plan gives the proxy's address, the daemon listens on another. Call before the start."""
        ip = host.address[0]
        with socket.create_server((ip, 0)) as probe:
            host.listen = probe.getsockname()
        proxy = make_proxy(host.listen, listen=(ip, 0))
        host.address = proxy.address
        self.write_plan()
        self.write_config(host)
        return proxy

    def put_image(self, name, tensors, **options):
        st.write_checkpoint(self[name].image, tensors, **options)

    def export(self, name, tensors, **options):
        """A directory to publish."""
        directory = self.directory / "exports" / name
        st.write_checkpoint(directory, tensors, **options)
        return directory

    # --- running

    def start_all(self):
        for host in self.hosts.values():
            host.start()
        for host in self.hosts.values():
            host.wait_ready()

    def publish(self, directory, *arguments, expect=0, seconds=90):
        return self.root.ctl("publish", directory, *arguments, expect=expect, seconds=seconds)

    def wait_converged(self, version, names=None, seconds=60.0):
        """Until the root knows every host (or those of `names`) idle at `version`, and each host's own marker says so."""
        wanted = [self[name] for name in (names or self.hosts)]

        def converged():
            document = self.root.get("/v1/nodes") or {"nodes": []}
            rows = {row["name"]: (row["state"], row["version"]) for row in document["nodes"]}
            lacking = {h.name: (rows.get(h.name), h.marker()) for h in wanted
                       if rows.get(h.name) != ("IDLE", str(version)) or h.marker().get("version") != str(version)}
            self._lacking = lacking
            return not lacking

        try:
            until(f"v{version} on {len(wanted)} hosts", converged, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\nlacking: {self._lacking}") from None

    # --- judging

    def assert_images(self, expected, names=None):
        """Every tensor of every host, read by the independent reader, has the bytes of `expected`."""
        for name in names or self.hosts:
            wrong = st.difference(expected, st.read_checkpoint(self[name].image))
            if wrong:
                raise AssertionError(f"{name}: {wrong}; marker {self[name].marker()}")

    def assert_all_alive(self):
        dead = [f"{h.name} ended with {h.process.returncode}" for h in self.hosts.values() if h.process and not h.alive()]
        if dead:
            raise AssertionError("; ".join(dead))

    def show_logs(self):
        for host in self.hosts.values():
            print(f"--- {host.name} {'runs' if host.alive() else 'does not run'}\n{host.log_tail()}", file=sys.stderr)

    def close(self):
        for host in getattr(self, "hosts", {}).values():
            if host.process is not None:
                host.process.kill()
                host.process.wait()
                host.process = None
        shutil.rmtree(self.directory, ignore_errors=True)


class FleetCase(unittest.TestCase):
    """A test whose fleets show their logs when it fails, before they are cleaned up."""

    def __init__(self, name):
        super().__init__(name)
        self._fleets = []
        test = getattr(self, name)

        @functools.wraps(test)
        def with_logs():
            try:
                test()
            except BaseException:
                for fleet in self._fleets:
                    fleet.show_logs()
                raise
        setattr(self, name, with_logs)

    def make_fleet(self, plan, **options):
        fleet = Fleet(plan, **options)
        self._fleets.append(fleet)
        self.addCleanup(fleet.close)
        return fleet


def e2e_main():
    """unittest.main with a bound: past it the running test fails as any other, so that its fleet is cleaned up. CTest's own
    time-out is later and only for the case that this one fails."""
    seconds = int(os.environ.get("DELTARELAY_E2E_SECONDS", "300"))

    def expired(number, _):
        raise TimeoutError(f"the tests of this file took longer than {seconds} s (signal {number})")
    signal.signal(signal.SIGALRM, expired)
    signal.signal(signal.SIGTERM, expired)
    signal.alarm(seconds)
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    signal.alarm(0)
    return 0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1
