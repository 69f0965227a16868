"""Pairs of the twin programs ours_probe and siw_probe: one connects, the other listens, each does its steps."""
import itertools
import json

from cells import TO_SIW, Mismatch, require

ports = itertools.count(7300)
LIMIT = 40


class Side:
    """One of the two, under way or ended."""

    def __init__(self, name, program):
        self.name = name
        self.program = program
        self.done = None

    def lines(self):
        out = self.program.output.texts["out"]
        return [json.loads(line) for line in out.split("\n")[:-1] if line.startswith("{")]

    def event(self, name):
        """The event of that name, or None."""
        return next((line for line in self.lines() if line.get("event") == name), None)

    def step(self, name):
        """How the last such step ended, or None."""
        return next((line for line in reversed(self.lines()) if line.get("step") == name), None)

    def require_event(self, name):
        found = self.event(name)
        require(found, f"{self.name}: no event {name}: {self.said()}")
        return found

    def wait_for(self, test, limit=10):
        """Until one of its lines passes test(line)."""
        found = self.program.output.wait(lambda _: any(test(line) for line in self.lines()), limit)
        require(found, f"{self.name} did not say what was expected: {self.said()}")

    def wait(self, limit=LIMIT):
        if not self.done:
            self.done = self.program.wait(limit)
        return self.done

    def require_success(self):
        done = self.wait()
        require(done.code == 0, f"{self.name}: {self.said()}")

    def said(self):
        lines = [json.dumps(line) for line in self.lines()[-3:]]
        code = self.program.output.code if self.program.output.ended else "still running"
        return f"exit code {code}; " + "; ".join(lines) + self.program.output.texts["err"][-200:]


class Pair:
    """`initiator`, `responder`; also as `ours` and `siw`."""

    def __init__(self, lab, cell, connect=(), listen=(), connect_steps=(), listen_steps=(), ours=()):
        """`connect`, `listen`: options of either side, understood by both programs; `ours`: of ours alone."""
        ours_initiates = cell.direction == TO_SIW
        port = next(ports)
        to = lab.siw_address(cell.ip) if ours_initiates else lab.host_address(cell.ip)
        ours = ["--crc", cell.crc, *ours]

        def start(ours_side, role, options, steps):
            arguments = [role, to, port, *options, *(ours if ours_side else ()), *steps]
            if ours_side:
                return Side("ours", lab.start("interop_ours_probe", *arguments))
            return Side("siw", lab.guest.start(lab.ours("interop_siw_probe"), *arguments))

        self.responder = start(not ours_initiates, "listen", listen, listen_steps)
        self.responder.wait_for(lambda line: line.get("event") == "listening")
        self.initiator = start(ours_initiates, "connect", connect, connect_steps)
        self.ours, self.siw = (self.initiator, self.responder) if ours_initiates else (self.responder, self.initiator)

    def require_success(self):
        """Both did all their steps."""
        self.initiator.wait()
        if self.initiator.done.code != 0 and not self.responder.program.output.ended:
            self.responder.program.output.wait_end(1)
        if self.initiator.done.code != 0:
            raise Mismatch(f"{self.initiator.name}: {self.initiator.said()}; {self.responder.name}: {self.responder.said()}")
        self.responder.require_success()

    def finish(self, limit=15):
        """Both end, however."""
        return self.initiator.wait(limit), self.responder.wait(limit)
