"""relayctl checkpoint make|step and delta encode that are stopped, killed or run out of room leave nothing half-made."""
import resource
import signal
import subprocess
import time

from relayctl_case import RELAYCTL, RUN_SECONDS_MAX, RelayctlCase, main, tree_bytes

# Minutes of work, so that a signal always comes in the middle of it; little of it is ever written.
LONG = ("--size", "64GiB", "--no-masters", "--seed", 1)
FULL_DISK = "mount -t tmpfs -o size=1m none disk && cd disk && "


class StoppedTest(RelayctlCase):
    def start(self, *args, **options):
        """A running relayctl that has begun to write."""
        run = subprocess.Popen([RELAYCTL, *map(str, args)], cwd=self.dir, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def await_staging(self, pattern, others=()):
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while time.monotonic() < deadline:
            found = [path for path in self.dir.glob(pattern) if path not in others]
            if found and any(path.stat().st_blocks for path in self.dir.glob(pattern + "/*/*.safetensors")):
                return found[0]
            time.sleep(0.01)
        self.fail(f"nothing like {pattern} appeared")

    def names(self):
        return sorted(path.name for path in self.dir.iterdir())

    def test_a_signal_ends_make_by_that_signal_with_nothing_left(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = self.start("checkpoint", "make", "v1", *LONG)
            self.await_staging(".v1.partial-*")
            run.send_signal(number)
            _, said = run.communicate(timeout=RUN_SECONDS_MAX)
            self.assertEqual((run.returncode, self.names()), (-number, []), said)
            self.assertEqual(said, f"cannot make checkpoint v1: stopped by {number.name}, nothing is left behind\n")

    def test_a_signal_ends_step_and_the_source_is_whole(self):
        self.relayctl("checkpoint", "make", "v1", "--size", "128MiB", "--seed", 1)
        before = tree_bytes(self.dir / "v1")
        # Steps of a checkpoint this small are over soon: one that was is started again.
        for attempt in range(20):
            run = self.start("checkpoint", "step", "v2", "--from", "v1", "--change", "3%", "--seed", 2, "--threads", 1)
            self.await_dir(".v2.partial-*", run)
            run.send_signal(signal.SIGTERM)
            _, said = run.communicate(timeout=RUN_SECONDS_MAX)
            if run.returncode != 0:
                break
            subprocess.run(["rm", "-r", "v2", "v2.masters"], cwd=self.dir, check=True)
        self.assertEqual((run.returncode, self.names()), (-signal.SIGTERM, ["v1", "v1.masters"]), said)
        self.assertIn("stopped by SIGTERM", said)
        self.assertEqual(before, tree_bytes(self.dir / "v1"))

    def await_dir(self, pattern, run):
        while not list(self.dir.glob(pattern)) and run.poll() is None:
            time.sleep(0.001)

    def test_a_caller_that_ignores_a_signal_is_obeyed(self):
        run = self.start("checkpoint", "make", "v1", *LONG,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.await_staging(".v1.partial-*")
        run.send_signal(signal.SIGHUP)
        with self.assertRaises(subprocess.TimeoutExpired):
            run.wait(timeout=0.5)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=RUN_SECONDS_MAX)
        self.assertEqual((run.returncode, self.names()), (-signal.SIGINT, []))

    def test_what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_writes_is_not(self):
        killed = self.start("checkpoint", "make", "v1", *LONG)
        left = self.await_staging(".v1.partial-*")
        killed.kill()
        killed.wait()
        living = self.start("checkpoint", "make", "v1", *LONG)
        writing = self.await_staging(".v1.partial-*", others=[left])
        (self.dir / ".v1.partial-notes.txt").write_text("not ours\n")
        self.assertEqual(self.names(), sorted([writing.name, ".v1.partial-notes.txt"]))  # the second run cleared
        made = self.relayctl("checkpoint", "make", "v1", "--size", "64KiB", "--no-masters", "--seed", 1)
        self.assertEqual(made.err, "")
        self.assertTrue(writing.is_dir())
        living.kill()
        living.wait()
        self.assertEqual(self.relayctl("checkpoint", "make", "v2", "--size", "64KiB", "--no-masters", "--seed", 1).err, "")
        subprocess.run(["rm", "-r", "v1"], cwd=self.dir, check=True)
        run = self.relayctl("checkpoint", "make", "v1", "--size", "64KiB", "--no-masters", "--seed", 1)
        self.assertEqual(run.err, f"note: removed {writing}, which a run that was killed had left\n")
        self.assertEqual(self.names(), [".v1.partial-notes.txt", "v1", "v2"])

    def test_a_limit_on_the_size_of_files_is_an_error_with_its_way_out(self):
        for args in (("checkpoint", "make", "v1", "--size", "8MiB", "--seed", 1),
                     ("checkpoint", "step", "v1", "--from", "base", "--change", "3%", "--seed", 1)):
            if "base" in args:
                self.relayctl("checkpoint", "make", "base", "--size", "8MiB", "--seed", 1)
            before = self.names()
            run = self.start(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
            _, said = run.communicate(timeout=RUN_SECONDS_MAX)
            self.assertEqual((run.returncode, self.names()), (1, before), said)
            self.assertIn("File too large", said)
            self.assertIn("ulimit -f", said)

    def test_a_full_disk_is_an_error_with_its_way_out(self):
        (self.dir / "disk").mkdir()
        own_mounts = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        if subprocess.run([*own_mounts, FULL_DISK + "true"], cwd=self.dir, capture_output=True).returncode != 0:
            self.skipTest("no mount namespace of one's own here")
        script = FULL_DISK + f"'{RELAYCTL}' checkpoint make v1 --size 8MiB --seed 1; echo $? $(ls -A)"
        done = subprocess.run([*own_mounts, script], cwd=self.dir, capture_output=True, text=True,
                              timeout=RUN_SECONDS_MAX)
        self.assertEqual(done.stdout, "1\n", done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertIn("Try: free some space", done.stderr)

    def test_a_stopped_encode_leaves_no_partial_file(self):
        self.relayctl("checkpoint", "make", "v1", "--size", "128MiB", "--no-masters", "--seed", 1)
        self.relayctl("checkpoint", "make", "v2", "--size", "128MiB", "--no-masters", "--seed", 2)
        for attempt in range(20):
            run = self.start("delta", "encode", "v1", "v2", "-o", "step.delta", "--threads", 1)
            self.await_dir("step.delta.partial", run)
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=RUN_SECONDS_MAX)
            if run.returncode != 0:
                break
            (self.dir / "step.delta").unlink()
        self.assertEqual((run.returncode, self.names()), (-signal.SIGINT, ["v1", "v2"]), said)


if __name__ == "__main__":
    main()
