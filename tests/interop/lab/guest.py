"""A siw host: a Linux kernel with the siw driver as one process (User Mode Linux), and its agent that runs programs there."""
import itertools
import json
import os
import queue
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

from .process import Program

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOT_LIMIT = 60  # seconds; it takes one or two
MEMORY = "512M"
MEMORY_FOLDER = "/dev/shm"  # a tmpfs of the lab's own: the memory is a file that the kernel unlinks at once


class GuestLost(Exception):
    """The siw host is gone: its kernel stopped, or it does not answer."""


class GuestProgram(Program):
    def __init__(self, guest, number, command):
        super().__init__(command)
        self.guest = guest
        self.number = number

    def signal(self, number):
        if not self.output.ended:
            self.guest.say(id=self.number, signal=int(number))


class Guest:
    def __init__(self, kernel, folder, tap, number, mtu, shim=None, peer="10.99.0.1", offload=True):
        """`folder`: for its log; `tap`: an interface that is up; `number` makes the addresses. Returns when the agent
        answers."""
        self.address = f"10.99.0.{number}"
        self.address6 = f"fd99::{number}"
        self.numbers = itertools.count(1)
        self.programs = {}
        self.answers = {}
        self.lock = threading.Lock()
        self.lost = threading.Event()
        self.link = None
        self.log = os.path.join(folder, f"guest-{number}.log")
        with socket.create_server((peer, 0)) as listener:
            listener.settimeout(0.2)
            self.start_kernel(kernel, folder, tap, number, mtu, shim, f"{peer}:{listener.getsockname()[1]}", offload)
            self.link = self.wait_for_agent(listener)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self.listen_to_agent, daemon=True).start()
        threading.Thread(target=self.watch_kernel, daemon=True).start()

    def start_kernel(self, kernel, folder, tap, number, mtu, shim, peer, offload):
        environment = dict(os.environ, TMPDIR=MEMORY_FOLDER)
        if shim:
            environment["LD_PRELOAD"] = shim
        init = os.path.join(HERE, "guest", "init")
        command = [kernel, f"mem={MEMORY}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
                   f"vec0:transport=tap,ifname={tap},depth=64,gro={int(offload)},mtu={mtu},mac=02:00:00:00:00:{number:02x}",
                   f"uml_dir={folder}", f"umid=guest{number}", "con=null", "con0=null,fd:1", "con1=null", "quiet",
                   f"lab.agent={os.path.join(HERE, 'guest', 'agent.py')}", f"lab.python={sys.executable}",
                   f"lab.address={self.address}/24", f"lab.address6={self.address6}/64", f"lab.peer={peer}"]
        # A kernel that panics aborts, and its core would be its whole memory.
        with open(self.log, "ab") as log:
            self.log_start = log.tell()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))

    def wait_for_agent(self, listener):
        for _ in range(int(BOOT_LIMIT / 0.2)):
            try:
                return listener.accept()[0]
            except socket.timeout:
                if self.process.poll() is not None:
                    break
        self.kill()
        raise GuestLost(f"the siw host did not boot: {self.last_words()}")

    # Commands.

    def start(self, *command, env=None):
        number = next(self.numbers)
        program = GuestProgram(self, number, command)
        self.programs[number] = program
        self.say(id=number, start=program.command, env=env or {})
        return program

    def run(self, *command, limit=30, env=None):
        done = self.start(*command, env=env).wait(limit)
        self.require_alive()
        return done

    def wait_listening(self, port, limit=15):
        return self.ask(limit + 5, listening=port, limit=limit)

    def read(self, path):
        return self.ask(20, read=path).encode("latin-1")

    def write(self, path, text):
        self.ask(20, write=path, text=text)

    # The connection with the agent.

    def say(self, **what):
        try:
            with self.lock:
                self.link.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            self.lose()

    def ask(self, patience, **what):
        number = next(self.numbers)
        self.answers[number] = queue.Queue()
        self.say(id=number, **what)
        try:
            answer = self.answers[number].get(timeout=patience)
        except queue.Empty:
            raise GuestLost(f"the siw host does not answer: {self.last_words()}") from None
        finally:
            del self.answers[number]
        if answer is None:
            raise GuestLost(f"the siw host is gone: {self.last_words()}")
        if "failed" in answer:
            raise OSError(answer["failed"])
        return answer["done"]

    def listen_to_agent(self):
        rest = b""
        try:
            while octets := self.link.recv(1 << 20):
                *lines, rest = (rest + octets).split(b"\n")
                for line in lines:
                    self.hear(json.loads(line))
        except OSError:
            pass
        self.lose()

    def watch_kernel(self):
        """A kernel that panics writes so and then does nothing for ever."""
        with open(self.log, "rb") as log:
            log.seek(self.log_start)
            while self.process.poll() is None:
                if b"Kernel panic" in log.read():
                    self.kill()
                time.sleep(0.1)
        self.lose()

    def hear(self, what):
        number = what["id"]
        if number in self.answers:
            self.answers[number].put(what)
        elif number in self.programs:
            output = self.programs[number].output
            for stream in ("out", "err"):
                if stream in what:
                    output.add(stream, what[stream])
            if "exit" in what:
                del self.programs[number]
                output.end(what["exit"])

    def lose(self):
        self.lost.set()
        for program in list(self.programs.values()):
            program.output.end(None)
        for answer in list(self.answers.values()):
            answer.put(None)

    # Life.

    def alive(self):
        return self.process.poll() is None and not self.lost.is_set()

    def require_alive(self):
        if not self.alive():
            raise GuestLost(f"the siw host is gone: {self.last_words()}")

    def last_words(self):
        """What its kernel said about its end, or the last it said at all."""
        with open(self.log, encoding="latin-1") as log:
            log.seek(self.log_start)
            lines = [line.strip() for line in log if line.strip()]
        telling = [line for line in lines if "panic" in line.lower() or "bug:" in line.lower() or "RIP" in line]
        return "; ".join((telling or lines)[-4:]) or "it said nothing"

    def stop(self):
        if self.alive():
            self.say(stop=True)
            try:
                self.process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        # Its helper processes are of its group.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.link:
            self.link.close()
