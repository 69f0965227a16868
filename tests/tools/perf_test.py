"""iwarp-perf: every operation, briefly."""
import json
import unittest

from programs import PERF, PING, ProgramTest


class Perf(ProgramTest):
    def measure(self, address, *options):
        return json.loads(self.run_program(PERF, "connect", address, "--seconds", "1", "--json", *options))

    def test_throughput(self):
        server = self.serve(PERF)
        for op, size, depth in [("write", "1M", "4"), ("read", "64", "128"), ("send", "3000", "1"), ("send", "1", "64")]:
            with self.subTest(op=op, size=size, depth=depth):
                got = self.measure(server.address, "--op", op, "--size", size, "--depth", depth)
                self.assertEqual(set(got), {"op", "size", "depth", "seconds", "crc", "messages", "octets", "mb_per_s",
                                            "messages_per_s"})
                self.assertEqual((got["op"], got["depth"], got["crc"]), (op, int(depth), True))
                self.assertEqual(got["size"], 1 << 20 if size == "1M" else int(size))
                self.assertGreater(got["messages"], 0)
                self.assertGreaterEqual(got["seconds"], 1)
                self.assertEqual(got["octets"], got["messages"] * got["size"])
                self.assertAlmostEqual(got["mb_per_s"] * got["seconds"] * 1e6 / got["octets"], 1, places=6)
                self.assertAlmostEqual(got["messages_per_s"] * got["seconds"] / got["messages"], 1, places=6)

    def test_latency(self):
        server = self.serve(PERF)
        for op in ["write", "read", "send"]:
            for size in ["64", "8K"]:
                with self.subTest(op=op, size=size):
                    latency = self.measure(server.address, "--op", op, "--size", size, "--latency")["latency_us"]
                    self.assertEqual(list(latency), ["min", "p50", "p90", "p99", "p999", "max"])
                    self.assertEqual(sorted(latency.values()), list(latency.values()))
                    self.assertGreater(latency["min"], 0)

    def test_settings(self):
        sleeping = self.serve(PERF, "--poll", "off")
        self.assertFalse(self.measure(sleeping.address, "--crc", "off")["crc"])
        self.measure(sleeping.address, "--op", "send", "--markers", "on")
        self.measure(sleeping.address, "--op", "read", "--mpa-rev", "1")
        self.measure(sleeping.address, "--op", "send", "--latency")

    def test_words(self):
        server = self.serve(PERF)
        self.assertRegex(self.run_program(PERF, "connect", server.address, "--seconds", "1"),
                         r"^write of 65536 octets, depth 64, crc on: \d+ in [0-9.]+ s, [0-9.]+ MB/s, \d+ messages/s\n$")

    def test_wrong_server(self):
        ping = self.serve(PING)
        self.assertIn("is not an iwarp-perf server", self.run_program(PERF, "connect", ping.address, code=1))


if __name__ == "__main__":
    unittest.main()
