"""A TCP forwarder between two daemons that delays what passes. TLS goes through it untouched.

Each direction of a connection has a reader, which stamps what comes with the time at which it may leave, and a writer, which
waits for that time: a delay and not a throttle, so many pieces are under way at once, as on a long line.
"""
import collections
import socket
import threading
import time

PIECE_BYTES = 256 * 1024
UNDER_WAY_BYTES_MAX = 64 << 20


class _Direction:
    def __init__(self, source, sink, proxy):
        self.source, self.sink, self.proxy = source, sink, proxy
        self.pieces, self.bytes, self.ended = collections.deque(), 0, False
        self.changed = threading.Condition()
        for work in (self.read, self.write):
            threading.Thread(target=work, daemon=True).start()

    def read(self):
        while True:
            try:
                piece = self.source.recv(PIECE_BYTES)
            except OSError:
                piece = b""
            with self.changed:
                self.changed.wait_for(lambda: self.bytes < UNDER_WAY_BYTES_MAX)
                self.pieces.append((time.monotonic() + self.proxy.delay_seconds, piece))
                self.bytes += len(piece)
                self.changed.notify_all()
            if not piece:
                return

    def write(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.pieces)
                leaves_at, piece = self.pieces.popleft()
                self.bytes -= len(piece)
                self.changed.notify_all()
            time.sleep(max(0.0, leaves_at - time.monotonic()))
            try:
                if piece:
                    self.sink.sendall(piece)
                    self.proxy.count(len(piece))
                else:
                    self.sink.shutdown(socket.SHUT_WR)
                    return
            except OSError:
                return


class ByteProxy:
    """Listens on a port of its own on `host` and forwards to `target`. Use `with`."""

    def __init__(self, target, delay_seconds=0.0, listen=("127.0.0.1", 0)):
        self.target, self.delay_seconds = target, delay_seconds
        self._server = socket.create_server(listen)
        self.address = self._server.getsockname()
        self._lock = threading.Lock()
        self._sockets, self.forwarded_bytes, self._closed = [], 0, False
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self, size):
        with self._lock:
            self.forwarded_bytes += size

    def _accept(self):
        while True:
            try:
                outer, _ = self._server.accept()
            except OSError:
                return
            try:
                inner = socket.create_connection(self.target, timeout=10)
            except OSError:
                outer.close()
                continue
            inner.settimeout(None)
            with self._lock:
                self._sockets += [outer, inner]
            _Direction(outer, inner, self)
            _Direction(inner, outer, self)

    def cut(self):
        """Ends every connection now; new ones are accepted."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
