"""iwarp-ping against itself."""
import itertools
import signal
import socket
import subprocess
import unittest

from programs import LIMIT, PING, ProgramTest, Proxy, Talker


class Ping(ProgramTest):
    def test_every_combination_of_settings(self):
        # --crc and --markers of either side, --mpa-rev of the client.
        for server_crc, server_markers in itertools.product(["on", "off"], repeat=2):
            server = self.serve(PING, "--crc", server_crc, "--markers", server_markers)
            for crc, markers, revision in itertools.product(["on", "off"], ["on", "off"], ["1", "2"]):
                with self.subTest(server_crc=server_crc, server_markers=server_markers, crc=crc, markers=markers,
                                  revision=revision):
                    text = self.run_program(PING, "connect", server.address, "-C", "5", "-S", "3000", "--crc", crc,
                                            "--markers", markers, "--mpa-rev", revision)
                    # CRC is in force when either side asks (RFC 5044 s4.4).
                    agreed = "on" if "on" in (crc, server_crc) else "off"
                    self.assertRegex(text, rf"^5 pings of 3000 octets with {server.address} "
                                           rf"\(crc {agreed}, markers {markers}, MPA rev {revision}\): "
                                           r"min [0-9.]+ us, median [0-9.]+ us, p99 [0-9.]+ us\n$")

    def test_markers_may_be_left_out(self):
        # A peer that refuses markers, as Linux siw does: an empty rejection of revision 2, without CRC.
        refusal = b"MPA ID Rep Frame" + bytes([0x30, 2, 0, 4, 0, 1, 0, 1])
        with Talker(refusal) as peer:
            text = self.run_program(PING, "connect", peer.address, "-C", "1", "--markers", "on", code=1)
            self.assertIn("markers refused", text)
            text = self.run_program(PING, "connect", peer.address, "-C", "1", "--markers", "prefer", code=1)
            self.assertIn("rejected by the peer", text)
            self.assertEqual(peer.clients, 3)
        server = self.serve(PING)
        text = self.run_program(PING, "connect", server.address, "-C", "1", "--markers", "prefer")
        self.assertIn("markers on", text)

    def test_sizes(self):
        server = self.serve(PING)
        for size in ["1", "2", "15", "16", "17", "64", "65535", "64K", "1M", "16M"]:
            with self.subTest(size=size):
                self.run_program(PING, "connect", server.address, "-C", "2", "-S", size)

    def test_data_is_what_rping_sends(self):
        server = self.serve(PING, "-v", "-C", "1")
        text = self.run_program(PING, "connect", server.address, "-C", "3", "-S", "40", "-v")
        expected = []
        for number in range(3):
            data = f"rdma-ping-{number}: "
            data += "".join(chr(65 + (number + i) % 58) for i in range(39 - len(data)))
            expected.append(data)
        self.assertEqual(text.splitlines()[:3], ["ping data: " + line for line in expected])
        # -C 1: the server ends after this client.
        self.assertEqual(server.process.wait(timeout=LIMIT), 0)
        self.assertEqual(server.process.stdout.read().splitlines(), ["server ping data: " + line for line in expected])

    def test_many_clients_at_once(self):
        server = self.serve(PING, "-C", "8")
        clients = [subprocess.Popen([PING, "connect", server.address, "-C", "200"], stdout=subprocess.PIPE, text=True)
                   for _ in range(8)]
        for client in clients:
            text, _ = client.communicate(timeout=LIMIT)
            self.assertEqual(client.returncode, 0)
            self.assertTrue(text.startswith("200 pings"), text)
        self.assertEqual(server.process.wait(timeout=LIMIT), 0)
        self.assertEqual(server.stderr(), "")

    def test_strangers_disturb_nobody(self):
        server = self.serve(PING)
        silent = socket.create_connection(("127.0.0.1", server.port))
        for words in [b"GET / HTTP/1.1\r\n\r\n" * 3, b"MPA ID Req Frame", b"MPA ID Req Frame\x40\x02\xff\xff", b"\0" * 4096]:
            with socket.create_connection(("127.0.0.1", server.port)) as stranger:
                stranger.sendall(words)
        self.run_program(PING, "connect", server.address, "-C", "20")
        silent.close()
        self.run_program(PING, "connect", server.address, "-C", "20")

    def test_endless_run_ends_with_a_summary(self):
        server = self.serve(PING, "-v")
        client = subprocess.Popen([PING, "connect", server.address, "-S", "20"], stdout=subprocess.PIPE, text=True)
        # It is known to have pinged when the server has printed a ping.
        self.assertTrue(server.process.stdout.readline().startswith("server ping data: "))
        reader = subprocess.Popen(["cat"], stdin=server.process.stdout, stdout=subprocess.DEVNULL)
        client.send_signal(signal.SIGINT)
        text, _ = client.communicate(timeout=LIMIT)
        self.assertEqual(client.returncode, 0)
        self.assertRegex(text, r"^\d+ pings of 20 octets with ")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(timeout=LIMIT), 0)
        reader.wait(timeout=LIMIT)

    def test_killed_client_leaves_the_server_well(self):
        server = self.serve(PING, "-v")
        client = subprocess.Popen([PING, "connect", server.address, "-S", "20"], stdout=subprocess.DEVNULL)
        self.assertTrue(server.process.stdout.readline().startswith("server ping data: "))
        client.kill()
        client.wait()
        reader = subprocess.Popen(["cat"], stdin=server.process.stdout, stdout=subprocess.DEVNULL)
        self.run_program(PING, "connect", server.address, "-C", "20")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(timeout=LIMIT), 0)
        reader.wait(timeout=LIMIT)

    def test_damaged_octet_is_a_crc_error(self):
        server = self.serve(PING)

        def damage(chunk):
            return chunk[:-1] + bytes([chunk[-1] ^ 1])

        for from_server in (False, True):
            with self.subTest(from_server=from_server):
                with Proxy(server.port, 100_000, damage, from_server) as proxy:
                    text = self.run_program(PING, "connect", proxy.address, "-C", "100", "-S", "20000", code=1)
                    self.assertIn("CRC", text)
        self.run_program(PING, "connect", server.address, "-C", "20")

    def test_server_that_goes_silent(self):
        server = self.serve(PING)

        def never(_):
            server.kill()
            raise OSError

        with Proxy(server.port, 100_000, never, from_server=True) as proxy:
            text = self.run_program(PING, "connect", proxy.address, "-C", "100", "-S", "20000", code=1)
            self.assertIn(proxy.address, text)


if __name__ == "__main__":
    unittest.main()
