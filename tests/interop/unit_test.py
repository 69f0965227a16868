"""The lab's parts that need no siw host: programs with limits, the agent over loopback, lists of cells, the page."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import page  # noqa: E402
import scenarios  # noqa: E402
from lab.guest import Guest, GuestLost  # noqa: E402
from lab.process import HostProgram  # noqa: E402

BUILD = os.environ["IWARP_BUILD"]


class Programs(unittest.TestCase):
    def test_end_output_and_code(self):
        done = HostProgram(["sh", "-c", "echo out; echo err >&2; exit 3"]).wait(10)
        self.assertEqual((done.code, done.out, done.err), (3, "out\n", "err\n"))

    def test_limit_kills_children_too(self):
        program = HostProgram(["sh", "-c", "sleep 100 & echo $!; wait"])
        self.assertTrue(program.output.wait_text("\n", 10))
        child = int(program.output.texts["out"])
        self.assertIsNone(program.wait(0.1).code)
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{child}/stat", encoding="ascii") as stat:
            self.assertEqual(stat.read().split()[2], "Z")

    def test_stop_is_a_polite_signal(self):
        program = HostProgram(["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"])
        self.assertTrue(program.output.wait_text("up", 10))
        done = program.stop()
        self.assertEqual((done.code, done.out), (0, "up\nbye\n"))


class LocalGuest(Guest):
    """The agent as a process of this machine: the guest's side of everything but the kernel."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(None, self.folder.name, None, 2, 1500, peer="127.0.0.1")

    def start_kernel(self, kernel, folder, tap, number, mtu, shim, peer, offload):
        with open(self.log, "wb") as log:
            self.log_start = 0
            self.process = subprocess.Popen([sys.executable, "-I", os.path.join(HERE, "guest", "agent.py"), peer],
                                            stdout=log, stderr=log, start_new_session=True)


class Agent(unittest.TestCase):
    def setUp(self):
        self.guest = LocalGuest()
        self.addCleanup(self.guest.folder.cleanup)
        self.addCleanup(self.guest.stop)

    def test_runs_programs_at_once(self):
        programs = [self.guest.start("sh", "-c", f"echo {i}; exit {i}") for i in range(8)]
        for i, program in enumerate(programs):
            done = program.wait(20)
            self.assertEqual((done.code, done.out), (i, f"{i}\n"))

    def test_much_output(self):
        done = self.guest.run("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")
        self.assertEqual(len(done.out), 3000000)

    def test_missing_program(self):
        self.assertEqual(self.guest.run("/no/such/program").code, 127)

    def test_limit_and_signal(self):
        self.assertIsNone(self.guest.start("sleep", "100").wait(0.1).code)
        program = self.guest.start("sleep", "100")
        program.signal(signal.SIGTERM)
        self.assertEqual(program.wait(10).code, -signal.SIGTERM)

    def test_listeners(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.assertTrue(self.guest.wait_listening(listener.getsockname()[1], 5))
            port = listener.getsockname()[1]
        self.assertFalse(self.guest.wait_listening(port, 0.05))

    def test_files(self):
        path = os.path.join(self.guest.folder.name, "file")
        self.guest.write(path, "text \u00ff\n")
        self.assertEqual(self.guest.read(path), b"text \xff\n")
        with self.assertRaises(OSError):
            self.guest.read(path + "x")

    def test_lost_host_ends_everything(self):
        program = self.guest.start("sleep", "100")
        self.guest.process.kill()
        self.assertIsNone(program.wait(10).code)
        with self.assertRaises(GuestLost):
            self.guest.run("true")


class Cells(unittest.TestCase):
    def setUp(self):
        self.known = scenarios.all_of(BUILD)

    def test_names_are_unique_and_stay_the_same(self):
        names = [cell.name for scenario in self.known for cell in scenario.cells()]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 150)
        self.assertEqual(names, [cell.name for scenario in scenarios.all_of(BUILD) for cell in scenario.cells()])

    def test_every_scenario_goes_both_ways(self):
        for scenario in self.known:
            directions = {cell.direction for cell in scenario.cells()}
            self.assertEqual(len(directions), 2, scenario.name)

    def test_page_tells_what_failed(self):
        scenario = self.known[0]
        results = [{**page.as_record(cell), "scenario": scenario.name, "result": "passed", "note": ""} for cell in scenario.cells()]
        results[0].update(result="failed", note="this is why")
        text = page.text_of(results, self.known)
        self.assertIn(f"**{len(results) - 1} cells passed, 1 failed**", text)
        self.assertIn("23, 1 failed (1) |", text)
        self.assertIn("\n1. this is why\n", text)


if __name__ == "__main__":
    unittest.main()
