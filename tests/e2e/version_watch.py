"""Watches a running fleet and keeps every false word that it says about a version (rule 11 of the design).

A host says which version it holds in two places: deltarelay.json in the image, for engines, and its own row of the admin API. A
statement is `marker says committed v` or `row says IDLE at v`. It is judged by content: statement, bytes, statement again; when both
statements are the same, the bytes read in between must be those of v. Versions never come back, so equal statements mean that
nothing else was stated in between.
"""
import threading

import safetensors_py as st


class VersionWatch:
    def __init__(self, fleet):
        self.fleet = fleet
        self.contents = {}  # version -> tensors; add before the version can be stated
        self.false_words, self.judged, self.seen = [], 0, set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _statements(self, host):
        """(version or None, receiving version or None) of the marker and of the row; an unreachable daemon states nothing."""
        marker = host.marker()
        said = [int(marker["version"]) if marker.get("state") == "committed" else None]
        row = host.row(seconds=2.0)
        said.append(int(row["version"]) if row.get("state") == "IDLE" and row["version"] != "0" else None)
        return tuple(said)

    def look(self, host):
        before = self._statements(host)
        if not any(before):
            return
        found = st.read_checkpoint(host.image)
        after = self._statements(host)
        for place, first, second in zip(("deltarelay.json", "its row"), before, after):
            if first is None or first != second:
                continue
            self.judged += 1
            self.seen.add((host.name, first))
            wrong = f"v{first} was never published" if first not in self.contents else st.difference(self.contents[first], found)
            if wrong:
                self.false_words.append(f"{host.name}: {place} says v{first}, but {wrong}")

    def _run(self):
        while not self._stop.is_set():
            for host in self.fleet.hosts.values():
                if self._stop.is_set():
                    return
                try:
                    self.look(host)
                except (OSError, st.BadFile, ValueError) as error:
                    # An image that is being made for the first time may not be readable yet, but then nothing may be stated.
                    if any(self._statements(host)):
                        self.false_words.append(f"{host.name}: {error}, though it says {self._statements(host)}")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
