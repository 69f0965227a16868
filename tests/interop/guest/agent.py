"""Runs in the siw host. Connects to the lab, reads one JSON object a line, does what it says, answers with JSON lines.

    {"id": 1, "start": ["rping", "-s"]}     answers {"id": 1, "out"|"err": TEXT} as it comes, then {"id": 1, "exit": CODE}
    {"id": 1, "signal": 15}                 to the process group of that start
    {"id": 2, "listening": PORT, "limit": SECONDS}    answers {"id": 2, "done": true|false}
    {"id": 3, "read": FILE}, {"id": 4, "write": FILE, "text": TEXT}    answers {"id": N, "done": TEXT|true} or {"failed": WHY}
    {"stop": true}                          ends the agent, and with it the host

The end of the connection ends it as well. Octets travel as latin-1 text.
"""
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time


class Agent:
    def __init__(self, peer):
        host, port = peer.rsplit(":", 1)
        self.lab = self.connect(host, int(port))
        self.lab.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.lab, selectors.EVENT_READ, self.command)
        self.rest = b""
        self.processes = {}  # id -> (Popen, descriptors still open)
        self.waits = []  # (id, port, end)
        self.running = True

    @staticmethod
    def connect(host, port):
        end = time.monotonic() + 20
        while True:
            try:
                return socket.create_connection((host, port), timeout=2)
            except OSError:
                if time.monotonic() > end:
                    raise

    def say(self, **what):
        self.lab.setblocking(True)
        self.lab.sendall(json.dumps(what).encode() + b"\n")

    def run(self):
        while self.running:
            # Both pipes end a moment before the program does; one that leaves them to a child is looked after as well.
            ending = any(not streams for _, streams in self.processes.values())
            for key, _ in self.selector.select(0.005 if self.waits or ending else 0.2 if self.processes else None):
                key.data()
            self.reap()
            self.look_for_listeners()

    def command(self):
        octets = self.lab.recv(65536)
        if not octets:
            self.running = False
            return
        *lines, self.rest = (self.rest + octets).split(b"\n")
        for line in lines:
            self.obey(json.loads(line))

    def obey(self, order):
        number = order.get("id")
        try:
            if "start" in order:
                self.start(number, order["start"], order.get("env", {}))
            elif "signal" in order:
                if number in self.processes:
                    os.killpg(self.processes[number][0].pid, order["signal"])
            elif "listening" in order:
                self.waits.append((number, order["listening"], time.monotonic() + order["limit"]))
            elif "read" in order:
                with open(order["read"], "rb") as file:
                    self.say(id=number, done=file.read().decode("latin-1"))
            elif "write" in order:
                with open(order["write"], "w", encoding="latin-1") as file:
                    file.write(order["text"])
                self.say(id=number, done=True)
            elif "stop" in order:
                self.running = False
        except OSError as problem:
            self.say(id=number, failed=str(problem))

    def start(self, number, command, extra):
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       start_new_session=True, env={**os.environ, **extra})
        except OSError as problem:
            self.say(id=number, err=f"{problem}\n")
            self.say(id=number, exit=127)
            return
        streams = {"out": process.stdout, "err": process.stderr}
        self.processes[number] = (process, set(streams))
        for name, stream in streams.items():
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ, lambda n=name, s=stream: self.relay(number, n, s))

    def relay(self, number, name, stream):
        """Passes on what there is; False when there was nothing, or the end."""
        octets = stream.read(65536)
        if octets:
            self.say(id=number, **{name: octets.decode("latin-1")})
            return True
        if octets is not None:
            self.selector.unregister(stream)
            stream.close()
            self.processes[number][1].discard(name)
        return False

    def reap(self):
        for number, (process, streams) in list(self.processes.items()):
            if process.poll() is None:
                continue
            # What it left running in its group keeps the pipes open; a killed rping leaves nothing.
            for name, stream in (("out", process.stdout), ("err", process.stderr)):
                if name not in streams:
                    continue
                while not stream.closed and self.relay(number, name, stream):
                    pass
                if not stream.closed:
                    self.selector.unregister(stream)
                    stream.close()
            del self.processes[number]
            self.say(id=number, exit=process.returncode)

    def look_for_listeners(self):
        if not self.waits:
            return
        ports = listening_ports()
        for wait in list(self.waits):
            number, port, end = wait
            if port in ports or time.monotonic() > end:
                self.waits.remove(wait)
                self.say(id=number, done=port in ports)


def listening_ports():
    """Ports in state LISTEN (0A). siw listens with sockets of the kernel, which are listed like all others."""
    ports = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name, encoding="ascii") as table:
            for line in list(table)[1:]:
                words = line.split()
                if words[3] == "0A":
                    ports.add(int(words[1].rsplit(":", 1)[1], 16))
    return ports


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Agent(sys.argv[1]).run()
