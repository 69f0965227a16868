"""Runs the programs for the tests: one line on stderr for every failure, a server that says where it listens, and a TCP
proxy that stops, cuts or damages what passes."""
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

PING = os.environ["IWARP_PING"]
COPY = os.environ["IWARP_COPY"]
PERF = os.environ["IWARP_PERF"]
LIMIT = 100  # seconds, for any one program


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def run_program(self, *command, code=0, cwd=None):
        """Runs to its end. Success prints nothing on stderr, failure exactly one line that begins with the name."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=cwd)
        self.assertEqual(done.returncode, code, f"{command}: {done.stdout}{done.stderr}")
        if code == 0:
            self.assertEqual(done.stderr, "")
            return done.stdout
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith(os.path.basename(command[0]) + ": "), done.stderr)
        return done.stderr

    def serve(self, program, *arguments, listen="127.0.0.1:0", **options):
        return self.enterContext(Server(program, *arguments, listen=listen, **options))


class Server:
    """`PROGRAM serve ...`, ended by SIGTERM, which must give exit code 0."""

    def __init__(self, program, *arguments, listen, **options):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, "serve", *arguments, "--listen", listen], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, **options)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line + self.stderr()
        self.address = line.split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1])
        self.killed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.errors.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process.stdout.close()
        assert self.killed or code == 0, f"the server ended with {code}: {self.stderr()}"

    def kill(self):
        self.killed = True
        self.process.kill()

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()


class Proxy:
    """A TCP relay to `target` (a port of 127.0.0.1) for one connection. Once `limit` octets have gone from the client (or,
    with `from_server`, from the server) it calls `at_limit`, which may change the chunk that crosses the limit."""

    def __init__(self, target, limit, at_limit, from_server=False):
        self.target = target
        self.limit = limit
        self.at_limit = at_limit
        self.from_server = from_server
        self.reached = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.thread.join(LIMIT)

    def run(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.target))
        with client, server:
            back = threading.Thread(target=self.relay, args=(server, client, self.from_server), daemon=True)
            back.start()
            self.relay(client, server, not self.from_server)
            back.join(LIMIT)

    def relay(self, source, sink, counted):
        passed = 0
        with contextlib.suppress(OSError):
            while True:
                chunk = source.recv(65536)
                if not chunk:
                    break
                if counted and passed < self.limit <= passed + len(chunk):
                    self.reached.set()
                    chunk = self.at_limit(chunk)
                passed += len(chunk)
                sink.sendall(chunk)
        for end in (sink, source):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Talker:
    """A TCP server that is no iWARP peer: says `what` to everybody and closes."""

    def __init__(self, what):
        self.what = what
        self.clients = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # shutdown() wakes an accept() that waits; close() alone does not.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(LIMIT)

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.clients += 1
                with client:
                    client.recv(4096)
                    client.sendall(self.what)


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def have_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False
