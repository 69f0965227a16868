"""Runs every sample as its README says and looks at what it prints and leaves."""
import os
import signal
import subprocess
import tempfile
import unittest

FOLDER = os.environ["IWARP_SAMPLES"]
LIMIT = 60  # seconds, for any one program


def sample(name):
    return os.path.join(FOLDER, "iwarp-sample-" + name)


class SamplesTest(unittest.TestCase):
    def run_sample(self, name, *arguments, code=0):
        done = subprocess.run([sample(name), *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 0:
            self.assertEqual(done.stderr, "")
            return done.stdout
        return done.stderr

    def test_pingpong_in_one_process(self):
        said = self.run_sample("pingpong", "--count", "50", "--size", "3000")
        self.assertRegex(said, r"^50 round trips of 3000 octets, all checked, [0-9.]+ us each\n$")

    def test_pingpong_says_why_not(self):
        self.assertRegex(self.run_sample("pingpong", "--connect", "127.0.0.1", "--port", "1", code=1), "refused")

    def test_coroutine(self):
        said = self.run_sample("coroutine")
        self.assertIn('client: read "server\'s octets."', said)
        self.assertIn('my memory now says "client\'s octets."', said)
        self.assertIn("server: the client has gone", said)

    def serve_blocks(self, file):
        server = subprocess.Popen([sample("block-server"), file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.stderr.close)
        line = server.stdout.readline()
        self.assertRegex(line, r"^listening on 127\.0\.0\.1:\d+, \d+ blocks of 4096 octets$")
        return server, line.split(",")[0].rsplit(":", 1)[1]

    def test_blocks(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "disk.img")
            with open(file, "wb") as disk:
                disk.write(bytes(300 * 4096 + 100))
            server, port = self.serve_blocks(file)
            said = self.run_sample("block-client", "127.0.0.1", port, "--rounds", "40")
            self.assertEqual(said, "40 writes and reads, all octets right\n")
            # One client that is killed in the middle does not trouble the next.
            client = subprocess.Popen([sample("block-client"), "127.0.0.1", port, "--rounds", "1000000"])
            with self.assertRaises(subprocess.TimeoutExpired):
                client.wait(0.3)
            client.kill()
            client.wait()
            self.run_sample("block-client", "127.0.0.1", port, "--rounds", "5", "--seed", "2")
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(LIMIT), 0)
            self.assertEqual(server.stderr.read(), "")
            with open(file, "rb") as disk:
                octets = disk.read()
            self.assertEqual(len(octets), 300 * 4096 + 100)
            self.assertGreater(len(set(octets)), 250)  # random blocks arrived in the file

    def test_block_server_says_why_not(self):
        self.assertIn("no such file", self.run_sample("block-server", "/nonexistent/disk.img", code=1).lower())


if __name__ == "__main__":
    unittest.main()
