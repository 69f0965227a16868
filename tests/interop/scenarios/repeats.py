"""Fifty times: connect, ping, disconnect. No failure, and nothing left over on our side."""
import itertools

from cells import FROM_SIW, TO_SIW, Cell, Mismatch, Scenario, require
from lab.lab import poll_until
from probe import Pair

TIMES = 50


class Repeats(Scenario):
    name = "repeats"
    title = f"{TIMES} times connect, ping, disconnect"
    about = ("`one process each`: the twin probes open one connection after the other. `a client process each`: rping or iwarp-ping is "
             "started anew each time, the server stays. Open descriptors of our side are counted in /proc before and after.")

    def cells(self):
        for direction, crc in itertools.product((TO_SIW, FROM_SIW), ("on", "off")):
            yield Cell(self.name, "one process each", direction, "no failure, no descriptor more", crc=crc, size=1000)
            yield Cell(self.name, "a client process each", direction, "no failure, no descriptor more", crc=crc, size=1000)

    def run(self, lab, cell):
        if cell.case == "one process each":
            return self.one_process(lab, cell)
        return self.to_siw(lab, cell) if cell.direction == TO_SIW else self.from_siw(lab, cell)

    def one_process(self, lab, cell):
        times = ["--count", TIMES]
        pair = Pair(lab, cell, times, times, ["offer", "take", "write:1000", "send:1", "recv:2", "reads:1:1000", "disconnect"],
                    ["take", "offer", "recv:1", "check:1000", "send:2", "hold"])
        pair.require_success()
        end = pair.ours.require_event("end")
        require(end["descriptors_before"] == end["descriptors_after"], end)
        counts = {line["descriptors"] for line in pair.ours.lines() if "connection" in line}
        if pair.ours is pair.initiator:
            require(len(counts) == 1, f"descriptors grow: {sorted(counts)}")

    def to_siw(self, lab, cell):
        # -P: a server that takes one client after the other.
        server = lab.guest.start("rping", "-s", "-P", "-a", lab.siw_address(4), "-S", cell.size)
        require(lab.guest.wait_listening(7174), "rping does not listen")
        for number in range(TIMES):
            done = lab.run("iwarp-ping", "connect", lab.siw_target(4, 7174), "-C", 1, "-S", cell.size, "--crc", cell.crc)
            require(done.code == 0, f"connection {number + 1}: {done}")
        server.kill()

    def from_siw(self, lab, cell):
        with lab.serving("iwarp-ping", "--crc", cell.crc) as (server, port):
            before = server.descriptors()
            for number in range(TIMES):
                done = lab.guest.run("rping", "-c", "-a", lab.host_address(4), "-p", port, "-C", 1, "-S", cell.size, "-V")
                if done.code != 0:
                    raise Mismatch(f"connection {number + 1}: {done}; ours: {server.output.texts['err']}")
            # The last client's objects go a moment after it has gone.
            poll_until(lambda: server.descriptors() <= before, 5)
            require(server.descriptors() <= before, f"{before} descriptors before the first client, {server.descriptors()} in the end")
            require(server.stop().err == "", server.output.texts["err"])


ALL = [Repeats()]
