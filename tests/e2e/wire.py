"""The records of codec/FORMAT.md and the messages of relay/core/messages.hpp, spoken from Python: what a hostile peer needs.

Written from the texts and not from the code, with `struct`, `ssl` and `hashlib` alone. A hostile peer has no content key, so log
records are taken from a real node's log and altered, never made.
"""
import hashlib
import socket
import ssl
import struct
import subprocess
from dataclasses import dataclass, replace

HEADER = struct.Struct("<IHHHHHH16sQQQII32s")
SIGNATURE_BYTES = 64
RECORD_HEAD_BYTES = HEADER.size + SIGNATURE_BYTES
MAGIC = 0x594C5244
BEGIN, FRAME, FILE, END, COMMIT, ABORT = 1, 2, 3, 4, 5, 6
HELLO, WELCOME, HEARTBEAT, REPORT, ASK_AGAIN, RESUME, CLOSING = range(0x101, 0x108)
SYNC_MANIFEST_REQUEST, SYNC_MANIFEST, VERIFY_RESULTS = 0x110, 0x111, 0x121
STREAM, SYNC = 0, 1


@dataclass(frozen=True)
class Record:
    type: int
    mesh: bytes
    epoch: int = 0
    version: int = 0
    sequence: int = 0
    flags: int = 0
    stripe: int = 0
    payload: bytes = b""
    sha256: bytes = bytes(32)
    signature: bytes = bytes(64)

    def pack(self, payload_bytes=None):
        size = len(self.payload) if payload_bytes is None else payload_bytes
        return HEADER.pack(MAGIC, 1, 0, self.type, self.flags, self.stripe, 0, self.mesh, self.epoch, self.version, self.sequence,
                           size, 0, self.sha256) + self.signature + self.payload


def unpack(data, at=0):
    """The record at `at` and the offset behind it."""
    magic, major, _, kind, flags, stripe, _, mesh, epoch, version, sequence, size, _, sha256 = HEADER.unpack_from(data, at)
    if magic != MAGIC or major != 1:
        raise ValueError(f"no record at {at}")
    begin = at + RECORD_HEAD_BYTES
    if begin + size > len(data):
        raise ValueError(f"the record at {at} is cut off")
    record = Record(kind, mesh, epoch, version, sequence, flags, stripe, bytes(data[begin:begin + size]), sha256,
                    bytes(data[at + HEADER.size:begin]))
    return record, begin + size


def records_of_log(state_directory, version):
    """The records of one refit that a node has in its log, in order; their SHA-256 is checked here already."""
    found = {}
    for path in sorted((state_directory / "log").rglob("*")):
        data, at = path.read_bytes() if path.is_file() else b"", 0
        while at + RECORD_HEAD_BYTES <= len(data):
            record, at = unpack(data, at)
            assert hashlib.sha256(record.payload).digest() == record.sha256
            if record.version == version:
                found[record.sequence] = record
    return [found[sequence] for sequence in sorted(found)]


def altered_payload(record):
    """One bit of the payload flipped: neither SHA-256 nor signature holds."""
    middle = len(record.payload) // 2
    payload = record.payload[:middle] + bytes([record.payload[middle] ^ 1]) + record.payload[middle + 1:]
    return replace(record, payload=payload)


def forged(record):
    """As altered_payload(), with a SHA-256 that fits again: only the signature tells."""
    record = altered_payload(record)
    return replace(record, sha256=hashlib.sha256(record.payload).digest())


def mesh_id(ca_directory, mesh):
    """First 16 bytes of SHA-256 over the CA's SubjectPublicKeyInfo and the mesh's name."""
    pem = subprocess.run(["openssl", "x509", "-in", ca_directory / "ca.crt", "-pubkey", "-noout"], capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=pem, capture_output=True, check=True).stdout
    return hashlib.sha256(der + mesh.encode()).digest()[:16]


def sized(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def hello(mesh, node, rank=9, committed=0, image=bytes(16), epoch=0):
    payload = sized(node) + struct.pack("<QQIQQ", 1, 1 << 32, rank, epoch, committed) + image + struct.pack("<QQQQ", epoch, 0, 0, 0)
    return Record(HELLO, mesh, payload=payload)


@dataclass(frozen=True)
class Hello:
    node: str
    rank: int
    epoch: int
    committed: int
    image: bytes


def read_hello(record):
    (length,) = struct.unpack_from("<I", record.payload)
    _, _, rank, epoch, committed = struct.unpack_from("<QQIQQ", record.payload, 4 + length)
    at = 4 + length + struct.calcsize("<QQIQQ")
    return Hello(record.payload[4:4 + length].decode(), rank, epoch, committed, record.payload[at:at + 16])


def welcome(mesh, node, rank, epoch, committed, image, mode=STREAM):
    return Record(WELCOME, mesh, payload=sized(node) + struct.pack("<QIQQ", 7, rank, epoch, committed) + image + bytes([mode]))


def tls_context(server, tls_directory=None, ca=None):
    """TLS 1.3 with the certificate of `tls_directory`, or none at all. The peer's name is not looked at."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED if ca else ssl.CERT_NONE
    if ca:
        context.load_verify_locations(ca)
    if tls_directory:
        context.load_cert_chain(tls_directory / "node.crt", tls_directory / "node.key")
    return context


class Peer:
    """One TLS connection that carries records."""

    def __init__(self, stream):
        self.stream = stream
        stream.settimeout(20)

    def send(self, *records):
        self.stream.sendall(b"".join(record if isinstance(record, bytes) else record.pack() for record in records))

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.stream.recv(size - len(data))
            if not piece:
                raise EOFError("the peer has closed")
            data += piece
        return data

    def receive(self, *types):
        """The next record of these types (of any, without types); others are passed over."""
        while True:
            head = self._read(RECORD_HEAD_BYTES)
            size = HEADER.unpack_from(head)[11]
            record, _ = unpack(head + self._read(size))
            if not types or record.type in types:
                return record

    def receive_end(self):
        """Until the peer ends the connection: the Closing message before it, if it sent one."""
        said = None
        try:
            while True:
                record = self.receive()
                if record.type == CLOSING:
                    said = record.payload
        except (EOFError, OSError):
            return said

    def finish(self):
        """Ends our direction without a TLS goodbye and waits until the peer has read all and ended its own."""
        try:
            self.stream.shutdown(socket.SHUT_WR)  # from here on the stream is read raw
            while self.stream.recv(65536):
                pass
        except OSError:
            pass
        self.close()

    def close(self):
        self.stream.close()


def connect(address, context):
    return Peer(context.wrap_socket(socket.create_connection(address, timeout=10)))


class RogueParent:
    """Listens where a real parent should be, with that parent's certificate, and takes one child after the other."""

    def __init__(self, address, tls_directory):
        self._context = tls_context(True, tls_directory, tls_directory / "ca.crt")
        self._server = socket.create_server(address)
        self._server.settimeout(30)

    def accept(self, opened=True):
        """A child and its Hello; with `opened` one that has its image open and so states a version."""
        while True:
            connection, _ = self._server.accept()
            try:
                peer = Peer(self._context.wrap_socket(connection, server_side=True))
                record = peer.receive(HELLO)
                if not opened or read_hello(record).committed:
                    return peer, record.mesh, read_hello(record)
                peer.close()  # it dialled while its image was still being read; it comes again
            except (EOFError, OSError):
                connection.close()  # a child that gave up while we were busy; it comes again

    def close(self):
        self._server.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
