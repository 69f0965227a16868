"""Programs on our side of the wire: run with a limit, output collected while they run."""
import dataclasses
import os
import signal
import subprocess
import threading
import time


@dataclasses.dataclass
class Done:
    """How a program ended. `code` is None when it did not end in time and was killed; negative: the signal."""
    command: list
    code: int | None
    out: str
    err: str

    def __str__(self):
        how = "did not end in time" if self.code is None else f"exit code {self.code}"
        text = (self.out + self.err).strip().replace("\n", "; ")
        return f"{os.path.basename(self.command[0])}: {how}" + (f": {text[-400:]}" if text else "")


class Output:
    """What a program has printed so far, on either stream, and a way to wait for more of it."""

    def __init__(self):
        self.texts = {"out": "", "err": ""}
        self.changed = threading.Condition()
        self.code = None
        self.ended = False

    def add(self, stream, text):
        with self.changed:
            self.texts[stream] += text
            self.changed.notify_all()

    def end(self, code):
        with self.changed:
            self.code = code
            self.ended = True
            self.changed.notify_all()

    def wait(self, condition, limit):
        """Until condition(self) holds or the program ended; whether it holds."""
        with self.changed:
            self.changed.wait_for(lambda: condition(self) or self.ended, limit)
            return condition(self)

    def wait_text(self, text, limit):
        return self.wait(lambda o: text in o.texts["out"] + o.texts["err"], limit)

    def wait_end(self, limit):
        with self.changed:
            return self.changed.wait_for(lambda: self.ended, limit)


class Program:
    """A program under way. Subclasses say how to send it a signal."""

    def __init__(self, command):
        self.command = [str(word) for word in command]
        self.output = Output()

    def wait(self, limit):
        """Its end, by a kill if need be."""
        in_time = self.output.wait_end(limit)
        if not in_time:
            self.kill()
            self.output.wait_end(5)
        return Done(self.command, self.output.code if in_time else None, self.output.texts["out"], self.output.texts["err"])

    def kill(self):
        self.signal(signal.SIGKILL)

    def stop(self, limit=5):
        """SIGTERM, and its end."""
        self.signal(signal.SIGTERM)
        return self.wait(limit)

    def signal(self, number):
        raise NotImplementedError


class HostProgram(Program):
    def __init__(self, command, env=None):
        super().__init__(command)
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True, env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        self.readers = [threading.Thread(target=self.read, args=(name, stream), daemon=True)
                        for name, stream in (("out", self.process.stdout), ("err", self.process.stderr))]
        for reader in self.readers:
            reader.start()
        threading.Thread(target=self.reap, daemon=True).start()

    def read(self, name, stream):
        while octets := os.read(stream.fileno(), 65536):
            self.output.add(name, octets.decode("latin-1"))

    def reap(self):
        code = self.process.wait()
        for reader in self.readers:
            reader.join(2)
        self.output.end(code)
        if not any(reader.is_alive() for reader in self.readers):
            self.process.stdout.close()
            self.process.stderr.close()

    def signal(self, number):
        if self.process.poll() is None:
            os.killpg(self.pid, number)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def poll_until(condition, limit, pause=0.01):
    """Whether condition() came true within `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
