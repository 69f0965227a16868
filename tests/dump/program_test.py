"""iwarp-dump as a user runs it: every kind of file, every option, and one clear line for what cannot be read."""
import bz2
import glob
import gzip
import json
import lzma
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

import programs
from programs import DUMP, FIXTURES, dump, events, run

RPING = os.path.join(FIXTURES, "siw-rping.pcap")
WRITE = os.path.join(FIXTURES, "siw-write-5000.pcap")


def octets(path):
    with open(path, "rb") as file:
        return file.read()


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def file(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def fails(self, *arguments, code=1, **options):
        done = run(DUMP, *arguments, code=code, **options)
        text = done.stderr.decode()
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("iwarp-dump: "), text)
        return text, done.stdout.decode()


class Input(ProgramTest):
    def setUp(self):
        super().setUp()
        self.expected = dump("--json", RPING)

    def test_standard_input(self):
        self.assertEqual(dump("--json", "-", input=octets(RPING)), self.expected)
        with open(RPING, "rb") as file:  # not a pipe: it can be sought
            self.assertEqual(dump("--json", "-", stdin=file), self.expected)

    def test_a_pipe_that_gives_little_at_a_time(self):
        process = subprocess.Popen([DUMP, "--json", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        data = octets(RPING)
        with process.stdin:
            for at in range(0, len(data), 997):
                process.stdin.write(data[at:at + 997])
                process.stdin.flush()
        with process.stdout:
            self.assertEqual(process.stdout.read().decode(), self.expected)
        self.assertEqual(process.wait(), 0)

    def test_lines_come_as_packets_do(self):
        data = octets(RPING)
        with subprocess.Popen([DUMP, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False) as process:
            process.stdin.write(data[:4000])
            process.stdin.flush()
            self.assertTrue(process.stdout.readline().startswith(b"stream 0: "))
            self.assertIn(b"MPA Request", process.stdout.readline())
            process.stdin.write(data[4000:])
            process.stdin.close()
            self.assertIn(b"5 streams", process.stdout.read().splitlines()[-1])

    def test_compressed(self):
        data = octets(RPING)
        half = len(data) // 2
        kinds = {
            "gz": gzip.compress(data),
            "two.gz": gzip.compress(data[:half]) + gzip.compress(data[half:]),
            "bz2": bz2.compress(data),
            "xz": lzma.compress(data),
        }
        if shutil.which("zstd"):
            kinds["zst"] = run("zstd", "-q", "-c", RPING).stdout
        for kind, packed in kinds.items():
            with self.subTest(kind):
                self.assertEqual(dump("--json", self.file("capture." + kind, packed)), self.expected)
                self.assertEqual(dump("--json", "-", input=packed), self.expected)

    @unittest.skipUnless(shutil.which("editcap"), "editcap is not installed (Debian package wireshark-common)")
    def test_pcapng(self):
        path = os.path.join(self.folder, "capture.pcapng")
        run("editcap", "-F", "pcapng", RPING, path)
        self.assertEqual(dump("--json", path), self.expected)
        self.assertEqual(dump("--json", self.file("capture.pcapng.gz", gzip.compress(octets(path)))), self.expected)

    def test_what_is_not_a_capture(self):
        for name, data in {"empty": b"", "text": b"hello, this is no capture at all\n", "short": octets(RPING)[:20]}.items():
            with self.subTest(name):
                text, out = self.fails(self.file(name, data))
                self.assertIn(name, text)
                self.assertEqual(out, "")
        self.assertIn("No such file", self.fails(self.folder + "/none.pcap")[0])
        self.fails(self.folder)

    def test_a_link_layer_that_is_not_known(self):
        header = bytearray(octets(RPING)[:24])
        header[20:24] = struct.pack("<I", 105)
        self.assertIn("IEEE802_11", self.fails(self.file("wlan", bytes(header)))[0])

    def test_a_cut_file_gives_what_is_there(self):
        data = octets(RPING)
        cut = self.file("cut.pcap", data[:len(data) // 2])
        text, out = self.fails("--json", cut)
        self.assertIn("cut.pcap", text)
        lines = out.splitlines()
        self.assertEqual(lines[:30], self.expected.splitlines()[:30])
        self.assertEqual(json.loads(lines[-1])["type"], "summary")

    def test_cut_compressed_files(self):
        for pack, name in ((gzip.compress, "gz"), (lzma.compress, "xz"), (bz2.compress, "bz2")):
            with self.subTest(name):
                packed = pack(octets(os.path.join(FIXTURES, "siw-read-70000.pcap")))
                text, out = self.fails("--json", self.file("cut." + name, packed[:len(packed) * 3 // 4]))
                self.assertIn("cut." + name, text)
        text, _ = self.fails(self.file("bad.gz", gzip.compress(octets(RPING))[:11] + b"\xff" * 200))
        self.assertIn("bad.gz", text)


class Options(ProgramTest):
    def test_help(self):
        text = dump("--help")
        for option in ("--json", "--port", "--filter", "--extract", "--verbose", "--hex", "--replay"):
            self.assertIn(option, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_wrong_arguments(self):
        self.fails(code=2)
        self.fails("--nonsense", RPING, code=2)
        self.fails("--port", "70000", RPING, code=2)
        self.assertIn("nonsense", self.fails("--filter", "nonsense here", RPING)[0])

    def test_text(self):
        lines = dump(WRITE).splitlines()
        messages = [line for line in lines if " Write " in line]
        self.assertEqual(len(messages), 6)
        self.assertEqual(len({line.index("5000") for line in messages}), 1, "aligned")
        self.assertTrue(lines[-1].startswith("1 streams, 24 FPDUs, 6 messages, 0 problems"), lines[-1])

    def test_verbose_and_hex(self):
        fpdus = [line for line in dump("-v", WRITE).splitlines() if " fpdu " in line]
        self.assertEqual(len(fpdus), 24)
        self.assertIn(b"MPA ID Req Frame".hex(), dump("-x", WRITE).replace(" ", ""))

    def test_filter_and_port(self):
        def streams(*arguments):
            return events(*arguments, RPING)[-1]["streams"]

        self.assertEqual(streams(), 5)
        self.assertEqual(streams("--filter", "ip6"), 1)
        self.assertEqual(streams("--filter", "tcp port 7471"), 2)
        self.assertEqual(streams("--port", "7471"), 2)
        self.assertEqual(streams("--port", "7471", "--port", "7174"), 5)
        self.assertEqual(streams("--port", "1"), 0)
        # The numbers of frames stay those of the file.
        whole = {e["frame"] for e in events(RPING) if e["type"] == "fpdu"}
        self.assertLess({e["frame"] for e in events("--filter", "ip6", RPING) if e["type"] == "fpdu"}, whole)

    def test_port_forces(self):
        programs.make_catalog(self.folder)
        self.assertEqual(events(self.folder + "/not-iwarp.pcap")[-1]["streams"], 0)
        self.assertEqual(events("--port", "80", self.folder + "/not-iwarp.pcap")[-1]["streams"], 1)

    def test_the_output_is_gone(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([DUMP, RPING], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space", done.stderr)


class Json(ProgramTest):
    KEYS = {
        "mpa": ["type", "stream", "frame", "from", "role", "rev", "m", "c", "r", "s", "ird", "ord", "rtr", "private"],
        "fpdu": ["type", "stream", "frame", "from", "offset", "op", "tagged", "last", "len", "crc"],
        "message": ["type", "stream", "frame", "from", "op", "len"],
        "problem": ["type", "rule", "stream", "frame", "offset", "text"],
        "summary": ["type", "streams", "fpdus", "messages", "problems", "crc_bad", "lost_octets"],
    }

    def test_keys(self):
        programs.make_catalog(self.folder)
        seen = set()
        for path in sorted(glob.glob(self.folder + "/*.pcap")) + [RPING]:
            found = events(path)
            self.assertEqual(found[-1]["type"], "summary")
            for e in found:
                seen.add(e["type"])
                if e["type"] == "fpdu" and e["op"] == "Empty":
                    continue
                for key in self.KEYS[e["type"]]:
                    self.assertIn(key, e)
                if e["type"] == "fpdu":
                    for key in ("stag", "to") if e["tagged"] else ("qn", "msn", "mo"):
                        self.assertIn(key, e)
                    self.assertIn(e["crc"], ("ok", "bad", "off", "cut"))
        self.assertEqual(seen, set(self.KEYS))

    def test_counts_are_of_the_lines(self):
        programs.make_catalog(self.folder)
        for path in glob.glob(self.folder + "/*.pcap"):
            found = events(path)
            for kind, key in (("fpdu", "fpdus"), ("message", "messages"), ("problem", "problems")):
                self.assertEqual(sum(e["type"] == kind for e in found), found[-1][key], path)

    def test_reads_are_matched(self):
        found = events(os.path.join(FIXTURES, "siw-read-70000.pcap"))
        requests = [e["message"] for e in found if e["type"] == "message" and e["op"] == "ReadReq"]
        answered = [e["request"] for e in found if e["type"] == "message" and e["op"] == "ReadResp"]
        self.assertEqual(requests, answered)
        self.assertEqual(len(requests), 6)


class Extract(ProgramTest):
    def test_the_octets_of_every_message(self):
        where = os.path.join(self.folder, "a", "b")
        dump("--extract", where, RPING)
        lengths = {f'{e["stream"]}-{e["message"]}-{e["op"]}.bin': e["len"] for e in events(RPING) if e["type"] == "message"}
        self.assertEqual({name: os.path.getsize(os.path.join(where, name)) for name in os.listdir(where)}, lengths)
        # What the client read from the server in rping's first round is what it then wrote back.
        self.assertEqual(octets(os.path.join(where, "0-3-ReadResp.bin")), octets(os.path.join(where, "0-6-Write.bin")))
        self.assertTrue(octets(os.path.join(where, "0-3-ReadResp.bin")).startswith(b"rdma-ping-0: "))

    def test_twice_into_the_same_folder(self):
        for _ in range(2):
            dump("--extract", self.folder, WRITE)
        self.assertEqual({os.path.getsize(path) for path in glob.glob(self.folder + "/*")}, {5000})

    def test_what_is_missing_is_zero(self):
        captures = os.path.join(self.folder, "captures")
        programs.make_catalog(captures)
        where = os.path.join(self.folder, "out")
        dump("--extract", where, captures + "/snap-length.pcap")
        data = octets(where + "/0-1-Send.bin")
        self.assertEqual(len(data), 900)
        self.assertEqual(data[100:], bytes(800))
        self.assertNotEqual(data[:20], bytes(20))

    def test_a_folder_that_cannot_be(self):
        self.fails("--extract", self.file("file", b"") + "/below", RPING)


class FakePeer:
    """Answers a connection with these octets, one list item for each read that brings something."""

    def __init__(self, *answers):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.answers = answers
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def __enter__(self):
        return self

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            for answer in self.answers:
                if not connection.recv(65536):
                    return
                connection.sendall(answer)
            while connection.recv(65536):
                pass

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()


def reply(flags=0x10, ird=1, order=1, private=b""):
    return b"MPA ID Rep Frame" + struct.pack(">BBHHH", flags, 2, 4 + len(private), ird, order) + private


class Replay(ProgramTest):
    def test_siws_rping_to_iwarp_ping(self):
        """The server names other buffers than the captured one, and reads and writes them all the same."""
        with subprocess.Popen([os.environ["IWARP_PING"], "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                              text=True) as server:
            try:
                address = server.stdout.readline().split()[-1]
                for stream in ("0", "1", "2"):
                    out = dump("--replay", address, "--stream", stream, RPING)
                    self.assertIn(" 0 problems", out.splitlines()[-1])
                found = events("--replay", address, RPING)
                self.assertEqual(sum(e["type"] == "message" for e in found), 28)
                # To a server that has no such buffers the answer is another.
                text, out = self.fails("--replay", address, WRITE)
                self.assertIn("otherwise", text)
                self.assertIn("differs: the peer went on: Terminate, DDP tagged buffer: invalid STag (1/1/00)", out)
            finally:
                server.terminate()

    def test_differences_in_the_reply(self):
        for answer, words in {
            reply(flags=0x30): "R was 0, is 1",
            reply(ird=3): "IRD was 1, is 3",
            reply(private=b"hello"): "the private data is another",
            reply(flags=0x50): "C was 0, is 1",
        }.items():
            with FakePeer(answer) as peer:
                text, out = self.fails("--replay", peer.address, "--timeout", "1", RPING)
            self.assertIn("differs: Reply: " + words, out)

    def test_no_reply(self):
        with FakePeer(b"HTTP/1.1 400 Bad Request\r\n") as peer:
            _, out = self.fails("--replay", peer.address, "--timeout", "1", RPING)
        self.assertIn("differs: no Reply came in time", out)

    def test_another_message(self):
        # A Send of 3 octets where the capture has a Read Request.
        send = struct.pack(">HBBIIII", 21, 0x41, 0x43, 0, 0, 1, 0) + b"abc" + bytes(1) + bytes(4)
        with FakePeer(reply(), send) as peer:
            _, out = self.fails("--replay", peer.address, "--timeout", "1", RPING)
        self.assertIn("differs: message 1 of the peer was ReadReq of 28 octets, is Send of 3 octets", out)

    def test_what_cannot_be_replayed(self):
        programs.make_catalog(self.folder)
        self.assertIn("no MPA Request", self.fails("--replay", "127.0.0.1:1", self.folder + "/mid-stream.pcap")[0])
        self.assertIn("missing", self.fails("--replay", "127.0.0.1:1", self.folder + "/hole.pcap")[0])
        self.assertIn("cannot connect", self.fails("--replay", "127.0.0.1:1", RPING)[0])
        self.fails("--replay", "127.0.0.1:99999", RPING, code=2)


if __name__ == "__main__":
    unittest.main()
