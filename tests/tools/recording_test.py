"""IWARP_PCAP: the programs record their own traffic, and iwarp-dump finds nothing wrong with it."""
import glob
import json
import os
import subprocess
import unittest

from programs import LIMIT, PING, ProgramTest

DUMP = os.environ["IWARP_DUMP"]
PINGS = 5


class Recording(ProgramTest):
    def environment(self, path):
        return dict(os.environ, IWARP_PCAP=path)

    def ping(self, address, path, *options, code=0):
        done = subprocess.run([PING, "connect", address, "-C", str(PINGS), "-S", "3000", *options], capture_output=True, text=True,
                              timeout=LIMIT, check=False, env=self.environment(path))
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def decode(self, path):
        text = self.run_program(DUMP, "--json", path)
        return [json.loads(line) for line in text.splitlines()]

    def check(self, path, crc):
        events = self.decode(path)
        summary = events[-1]
        self.assertEqual((summary["streams"], summary["problems"], summary["crc_bad"], summary["lost_octets"]), (1, 0, 0, 0))
        self.assertEqual([e["role"] for e in events if e["type"] == "mpa"], ["request", "reply"])
        fpdus = [e for e in events if e["type"] == "fpdu"]
        self.assertEqual({e["crc"] for e in fpdus}, {crc})
        # Every ping is a Read and a Write of 3000 octets by the server.
        written = sum(e["len"] for e in fpdus if e["op"] == "Write")
        read = sum(e["len"] for e in fpdus if e["op"] == "ReadResp")
        self.assertEqual((written, read), (PINGS * 3000, PINGS * 3000))
        return [(e["from"], e["offset"]) for e in fpdus]

    def test_both_ends_record_the_same(self):
        pattern = os.path.join(self.folder, "%p.pcap")
        for settings in [[], ["--markers", "on"]]:
            with self.subTest(settings=settings):
                server = self.serve(PING, env=self.environment(pattern))
                self.ping(server.address, pattern, *settings)
                server.stop()
                files = glob.glob(os.path.join(self.folder, "*.pcap"))
                self.assertEqual(len(files), 2)
                first, second = (sorted(self.check(path, "ok")) for path in files)
                self.assertEqual(first, second)
                for path in files:
                    os.unlink(path)

    def test_one_file_for_one_process(self):
        path = os.path.join(self.folder, "one.pcap")
        server = self.serve(PING, env=self.environment(path))
        text = self.ping(server.address, path, code=1)
        self.assertEqual(text.count("\n"), 1)
        self.assertIn("IWARP_PCAP", text)
        self.assertIn("%p", text)
        self.run_program(PING, "connect", server.address, "-C", str(PINGS), "-S", "3000")
        server.stop()
        self.check(path, "ok")

    def test_a_file_that_cannot_be_made(self):
        server = self.serve(PING)
        text = self.ping(server.address, os.path.join(self.folder, "no", "x.pcap"), code=1)
        self.assertEqual(text.count("\n"), 1)
        self.assertIn("IWARP_PCAP", text)


if __name__ == "__main__":
    unittest.main()
