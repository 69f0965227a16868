"""iwarp-dump against Wireshark's dissectors, capture by capture: the same start-up frames and FPDUs with the same fields in the
same frames. Where the two differ, the table says why Wireshark 4.0 is the one that is wrong; framing_test.cpp says what is in
each of those captures."""
import concurrent.futures
import glob
import os
import sys
import tempfile
import unittest

import programs

# Synthetic captures that tshark does not read right.
WRONG = {
    "markers-from-responder": "takes both directions for marked when one is, and reads no FPDU of the other",
    "markers-from-initiator": "takes both directions for marked when one is, and reads no FPDU of the other",
    "two-fpdus-with-markers": "with markers it looks for FPDUs at the beginning of a TCP segment alone",
    "two-fpdus-with-markers-no-crc": "with markers it looks for FPDUs at the beginning of a TCP segment alone",
    "marker-between-fpdus": "an FPDU that ends at a marker, in a stream marked one way",
    "one-octet-segments": "does not put start-up frames and FPDUs together from segments of one octet",
    "split-startup": "a start-up frame in more than one TCP segment is none to it, and without it the stream is not iWARP",
    "port-4420": "leaves the port to its NVMe/TCP dissector",
    "mid-stream": "without the start-up frames it sees no iWARP",
    "mid-stream-later": "without the start-up frames it sees no iWARP",
    "mid-stream-markers": "without the start-up frames it sees no iWARP",
    "mid-stream-markers-short": "without the start-up frames it sees no iWARP",
    "mid-stream-no-crc": "without the start-up frames it sees no iWARP",
    "mid-stream-later-no-crc": "without the start-up frames it sees no iWARP",
    "mid-stream-markers-no-crc": "without the start-up frames it sees no iWARP",
    "mid-stream-markers-short-no-crc": "without the start-up frames it sees no iWARP",
    "mid-fpdu": "without the start-up frames it sees no iWARP",
    "hole": "behind missing octets it finds no FPDU again",
    "hole-markers": "behind missing octets it finds no FPDU again",
    "hole-across-fpdus": "behind missing octets it finds no FPDU again",
    "snap-length": "reads no DDP header of an FPDU that was captured in part, though the header was captured",
    "snap-length-reads": "reads no DDP header of an FPDU that was captured in part, though the header was captured",
    "request-missing": "without both start-up frames it sees no iWARP",
    "same-ports-again": "takes the start-up of the next connection between the same ports for an FPDU of the last",
}
# Fixtures, likewise.
WRONG_FIXTURES = {
    "siw-nvme": "leaves port 4420 to its NVMe/TCP dissector, though this is NVMe over RDMA",
}
# With these options it reads them as iwarp-dump does.
RIGHT_WITH = {
    "port-4420": ["--disable-protocol", "nvme-tcp"],
    "siw-nvme": ["--disable-protocol", "nvme-tcp"],
}


def compare(path, *options):
    """Differences, frame by frame."""
    theirs, own = programs.tshark(path, *options), programs.ours(path)
    return [f"frame {frame}: tshark {theirs.get(frame)}, iwarp-dump {own.get(frame)}"
            for frame in sorted(set(theirs) | set(own)) if theirs.get(frame) != own.get(frame)]


@unittest.skipUnless(programs.have_tshark(), "tshark is not installed (Debian package tshark)")
class Wireshark(unittest.TestCase):
    def check(self, paths, wrong):
        self.assertTrue(paths)
        names = {os.path.splitext(os.path.basename(path))[0]: path for path in paths}
        self.assertEqual(set(wrong) - set(names), set(), "in the table, but no capture")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for name, found in zip(names, pool.map(compare, names.values())):
                with self.subTest(name):
                    if name in wrong:
                        if name in RIGHT_WITH:
                            self.assertEqual(compare(names[name], *RIGHT_WITH[name]), [])
                        self.assertTrue(found, f"tshark reads it right: take it out of the table ({wrong[name]})")
                    else:
                        self.assertEqual(found, [])

    def test_synthetic(self):
        with tempfile.TemporaryDirectory() as folder:
            programs.make_catalog(folder)
            self.check(sorted(glob.glob(folder + "/*.pcap")), WRONG)

    def test_fixtures(self):
        self.check(sorted(glob.glob(programs.FIXTURES + "/*.pcap")), WRONG_FIXTURES)


if __name__ == "__main__":
    if not programs.have_tshark():
        print("tshark is not installed (Debian package tshark)")
        sys.exit(77)
    unittest.main()
