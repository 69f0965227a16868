"""Command lines: help, version, and one clear line for everything wrong."""
import os
import unittest

from programs import COPY, PERF, PING, ProgramTest, Talker, have_ipv6, unused_port

COMMANDS = {PING: ["serve", "connect"], COPY: ["serve", "put", "get"], PERF: ["serve", "connect"]}


class Options(ProgramTest):
    def test_help(self):
        for program, commands in COMMANDS.items():
            text = self.run_program(program, "--help")
            for word in ["Examples:", "Exit codes", "--version", *commands]:
                self.assertIn(word, text)
            for command in commands:
                text = self.run_program(program, command, "--help")
                for word in ["--crc", "--markers", "Default:"]:
                    self.assertIn(word, text, f"{program} {command}")

    def test_version(self):
        for program in COMMANDS:
            self.assertRegex(self.run_program(program, "--version"),
                             rf"^{os.path.basename(program)} \d+\.\d+\.\d+\n$")

    def test_wrong_arguments_are_named_and_give_2(self):
        for command, named in [
            ((PING,), "serve, connect"),
            ((PING, "--bogus"), "--bogus"),
            ((PING, "fly"), "fly"),
            ((PING, "connect"), "ADDR"),
            ((PING, "connect", "localhost:99999"), "99999"),
            ((PING, "connect", "::1:x:"), "::1:x:"),
            ((PING, "connect", "localhost", "-S", "0"), "--size"),
            ((PING, "connect", "localhost", "-S", "17M"), "17M"),
            ((PING, "connect", "localhost", "-C", "-1"), "-1"),
            ((PING, "connect", "localhost", "--crc", "maybe"), "maybe"),
            ((PING, "connect", "localhost", "--mpa-rev", "3"), "--mpa-rev"),
            ((PING, "serve", "--listen", "localhost:port"), "port"),
            ((COPY, "put"), "FILE"),
            ((COPY, "put", "x"), "SERVER"),
            ((COPY, "get", "localhost"), "localhost"),
            ((COPY, "get", "localhost/" + "x" * 1025), "1024"),
            ((COPY, "serve"), "DIR"),
            ((PERF, "connect", "localhost", "--op", "erase"), "erase"),
            ((PERF, "connect", "localhost", "--depth", "0"), "--depth"),
            ((PERF, "connect", "localhost", "--size", "12q"), "12q"),
        ]:
            with self.subTest(command=command[1:]):
                self.assertIn(named, self.run_program(*command, code=2))

    def connecting(self, where):
        with open(os.path.join(self.folder, "file"), "w", encoding="utf-8") as file:
            file.write("x")
        return [(PING, "connect", where), (COPY, "put", file.name, where), (COPY, "get", where + "/x", file.name),
                (PERF, "connect", where)]

    def test_refused(self):
        where = f"127.0.0.1:{unused_port()}"
        for command in self.connecting(where):
            text = self.run_program(*command, code=1)
            self.assertIn(f"cannot connect to {where}: connection refused", text)

    def test_unknown_host(self):
        for command in self.connecting("no-such-host.invalid"):
            self.assertIn("no-such-host.invalid", self.run_program(*command, code=1))

    def test_peer_is_not_iwarp(self):
        with Talker(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") as talker:
            for command in self.connecting(talker.address):
                text = self.run_program(*command, code=1)
                self.assertIn(f"cannot connect to {talker.address}: ", text)
                # The reason names the protocol that was missed.
                self.assertRegex(text, "MPA|iWARP")

    def test_wrong_iwarp_program(self):
        ping = self.serve(PING)
        text = self.run_program(COPY, "get", ping.address + "/x", os.path.join(self.folder, "x"), code=1)
        self.assertIn(ping.address, text)
        perf = self.serve(PERF)
        text = self.run_program(PING, "connect", perf.address, "-C", "1", code=1)
        self.assertIn("rejected by the peer: not an iwarp-perf client", text)

    def test_cannot_listen(self):
        first = self.serve(PING)
        text = self.run_program(PING, "serve", "--listen", first.address, code=1)
        self.assertIn(f"cannot listen on {first.address}: ", text)

    def test_ipv6_and_names(self):
        named = self.serve(PING, listen="localhost:0")
        self.run_program(PING, "connect", f"localhost:{named.port}", "-C", "1")
        if not have_ipv6():
            self.skipTest("no IPv6 loopback here")
        six = self.serve(PING, listen="[::1]:0")
        self.assertIn(f"with {six.address} (", self.run_program(PING, "connect", six.address, "-C", "1"))
        # Every address: IPv4 and IPv6 on one port.
        both = self.serve(PING, listen=":0")
        self.run_program(PING, "connect", f"127.0.0.1:{both.port}", "-C", "1")
        self.run_program(PING, "connect", f"[::1]:{both.port}", "-C", "1")


if __name__ == "__main__":
    unittest.main()
