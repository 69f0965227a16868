#!/usr/bin/env python3
"""The drop-in: Debian's programs over iwarp-run, the symbols that it has beside those of rdma-core, and programs that misuse its calls.
Closes with `N passed, N failed`."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import symbols  # noqa: E402
from cells import CELLS  # noqa: E402

ADDRESS = "198.51.100.1"
PYVERBS = """
from pyverbs.device import Context, get_device_list
from pyverbs.pd import PD
from pyverbs.mr import MR
from pyverbs.cq import CQ
from pyverbs.qp import QP, QPInitAttr, QPCap
import pyverbs.enums as e
for device in get_device_list():
    context = Context(name=device.name.decode())
    pd = PD(context)
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
    mr.write("hello", 5)
    cq = CQ(context, 16)
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=4, max_recv_wr=4)))
    print(device.name.decode(), qp.qp_num, mr.read(5, 0).decode())
    for thing in (qp, cq, mr, pd, context):
        thing.close()
"""
FIO = """[global]
ioengine=rdma
port=9999
bs=64k
size=32m
{more}
[job]
rw={rw}
iodepth=16
"""


class Run:
    def __init__(self, options):
        self.run = os.path.join(options.build, "tools", "iwarp-run")
        self.keep = options.keep
        self.folder = tempfile.mkdtemp()
        self.values = {"@address": ADDRESS}
        self.file("dat", 'iwarp u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "wire0 0" ""\n')
        self.file("pyverbs", PYVERBS)
        self.file("fio-server", FIO.format(more="", rw="read"))
        for verb in ("write", "read", "send"):
            self.file("fio-" + verb, FIO.format(more=f"hostname=127.0.0.1\nverb={verb}", rw="write"))
        self.file("file", os.urandom(3 << 20).hex())
        self.values["@copy"] = os.path.join(self.folder, "copy")

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        self.values["@" + name] = path

    def start(self, command, log, environment):
        words = [self.values.get(word, word) for word in command]
        more = {name: self.values.get(value, value) for name, value in environment.items()}
        with open(log + ".out", "wb") as out, open(log + ".err", "wb") as err:
            return subprocess.Popen([self.run, "--", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder,
                                    env=dict(os.environ, **more), start_new_session=True)

    @staticmethod
    def end(process, limit):
        """Its exit code; None when it had to be stopped."""
        try:
            return process.wait(timeout=max(limit, 0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return None

    def cell(self, cell, number):
        """What was wrong; an empty string: nothing."""
        log = os.path.join(self.keep, f"{number:02}")
        until = time.monotonic() + cell.limit
        server = None
        if cell.server:
            server = self.start(cell.server, log + "-server", cell.environment)
            while not listening(cell.port):
                if server.poll() is not None:
                    return f"the server ended with {server.returncode}: {last_line(log + '-server')}"
                if time.monotonic() > until:
                    self.end(server, 0)
                    return f"the server never listened on port {cell.port}"
                time.sleep(0.02)  # between looks at /proc
        client = self.start(cell.client, log + "-client", cell.environment)
        code = self.end(client, until - time.monotonic())
        wrong = ""
        if code is None:
            wrong = f"the client had not ended after {cell.limit} s"
        elif code != cell.code:
            wrong = f"the client ended with {code}: {last_line(log + '-client')}"
        if server:
            ended = self.end(server, 5 if cell.server_code is not None and not wrong else 0)
            if not wrong and cell.server_code is not None and ended != cell.server_code:
                wrong = "the server had not ended" if ended is None else f"the server ended with {ended}: {last_line(log + '-server')}"
        return wrong or self.output(cell, log)

    @staticmethod
    def output(cell, log):
        for name, patterns in (("client", cell.expect), ("server", cell.server_expect)):
            if name == "server" and not cell.server:
                continue
            out, err = read(f"{log}-{name}.out"), read(f"{log}-{name}.err")
            for pattern in patterns:
                if not re.search(pattern, out + err, re.M):
                    return f"the {name} does not say {pattern}"
            unexpected = [line for line in err.splitlines() if not any(re.fullmatch(allowed, line) for allowed in cell.allowed)]
            if cell.silent and unexpected:
                return f"the {name} says on standard error: {unexpected[0]}"
        return ""


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def last_line(log):
    return ([""] + (read(log + ".out") + read(log + ".err")).split("\n"))[-2:][0].strip() or "it says nothing"


def listening(port):
    wanted = f":{port:04X}"
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read(path).splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[1].endswith(wanted):
                return True
    return False


def own_network():
    """Ports and addresses of nobody else: a network namespace with loopback and one interface. Only root can."""
    for command in ("ip link set lo up", "ip link add wire0 type veth peer name wire1", f"ip addr add {ADDRESS}/24 dev wire0",
                    "ip link set wire0 up", "ip link set wire1 up"):
        subprocess.run(command.split(), check=True, stdin=subprocess.DEVNULL)


def version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--keep", required=True, help="where the programs' output stays")
    parser.add_argument("--results", help="a JSON file for page.py")
    parser.add_argument("--cells", default="", help="only those whose name matches this expression")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            print("skipped: a network namespace of its own takes root and unshare(1)")
            print("0 passed, 0 failed, 1 skipped")
            return 0
        return subprocess.run(["unshare", "--net", sys.executable, os.path.join(HERE, "run.py"), *sys.argv[1:], "--inside"],
                              stdin=subprocess.DEVNULL, check=False).returncode
    own_network()
    shutil.rmtree(options.keep, ignore_errors=True)
    os.makedirs(options.keep)
    passed, failed, results = 0, 0, []

    def tell(name, wrong, seconds):
        nonlocal passed, failed
        passed, failed = passed + (not wrong), failed + bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {seconds:6.2f} s  {name}" + (f": {wrong}" if wrong else ""), flush=True)

    runner = Run(options)
    try:
        for number, cell in enumerate(CELLS):
            if not re.search(options.cells, cell.package + " " + cell.name):
                continue
            begin = time.monotonic()
            wrong = runner.cell(cell, number)
            tell(f"{cell.package}: {cell.name}", wrong, time.monotonic() - begin)
            results.append({"package": cell.package, "version": version(cell.package), "name": cell.name, "wrong": wrong, "note": cell.note})
        for name, check in symbols.checks(options.build).items():
            if re.search(options.cells, name):
                begin = time.monotonic()
                tell(name, check(), time.monotonic() - begin)
    finally:
        shutil.rmtree(runner.folder, ignore_errors=True)
    if options.results:
        with open(options.results, "w", encoding="utf-8") as out:
            json.dump(results, out, indent=1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
