"""Every operation crossed between the twin ends of tests/interop/matrix: one run of that program is a batch of cells."""
import json
import os
import time

from cells import Cell, Outcome, Scenario
from lab.process import HostProgram

PORT = 4791
RUNS = (  # mtu, ip, groups, which cells of them
    (1500, 4, "transfer,depth,errors,connection", "."),
    (9000, 6, "transfer,depth", "."),
)
LIMIT = 240  # seconds, for one run
RESULTS = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class Matrix(Scenario):
    name = "matrix"
    title = "The matrix: every operation, both ways"
    about = ("One C++ program for both ends (`tests/interop/matrix`), over libibverbs and librdmacm in the siw host and over our verbs "
             "outside; data checked on both sides.")
    batch = True
    known = None

    def __init__(self, build):
        self.build = build

    def cells(self):
        if not os.path.exists(program_of(self.build)):
            return []
        if self.known is None:
            self.known = [self.cell_of(line, mtu, ip) for mtu, ip, groups, only in RUNS
                          for line in list_cells(self.build, groups, only)]
        return self.known

    def cell_of(self, line, mtu, ip):
        connects = line.get("connector")
        variant = [f"{line[key]} {word}" for key, word in (("sge", "elements"), ("depth", "at once")) if key in line]
        if connects:
            variant.append(f"{'we connect' if connects == 'iwarp' else 'siw connects'}")
        direction = line["direction"].replace("->", " → ").replace("iwarp", "ours")
        return Cell(self.name, f"{line['group']}: {line['op']}", direction, line["expected"], mtu=mtu, ip=ip, crc=line["crc"],
                    size=line.get("size"), variant=", ".join(variant))

    def run_batch(self, lab, wanted, record):
        """Tells record(outcome) of each wanted cell."""
        for mtu, ip, groups, only in RUNS:
            left = {c.name: c for c in wanted if (c.mtu, c.ip) == (mtu, ip)}
            if not left:
                continue
            lab.set_mtu(mtu)
            lab.reboot()  # a fresh host: what a crash of siw leaves undone is then this run's own doing
            self.run_one(lab, ip, groups, only, mtu, left, record)
            for cell in left.values():
                record(Outcome(cell, "failed", "was not run: " + ("the siw host is gone: " + lab.guest.last_words()
                                                                 if not lab.guest.alive() else "the program ended early")))

    def run_one(self, lab, ip, groups, only, mtu, left, record):
        siw = lab.guest.start(lab.ours("interop_matrix_siw"), "serve", lab.siw_address(ip), PORT)
        siw.output.wait_text("serving", 10)
        ours = lab.start("interop_matrix_iwarp", "run", lab.siw_address(ip), PORT, "--groups", groups, "--only", only)
        end = time.monotonic() + LIMIT
        seen = 0
        while time.monotonic() < end:
            ours.output.wait(lambda o: o.texts["out"].count("\n") > seen, 1)
            lines = ours.output.texts["out"].split("\n")[:-1]
            for text in lines[seen:]:
                line = json.loads(text)
                if "cell" in line:
                    cell = left.pop(self.cell_of(line, mtu, ip).name, None)
                    if cell:
                        record(Outcome(cell, RESULTS[line["result"]], line["note"], line["ms"] / 1000))
            seen = len(lines)
            if ours.output.ended and ours.output.texts["out"].count("\n") == seen or lab.guest.lost.is_set():
                break
        ours.kill()
        siw.kill()


def program_of(build):
    return f"{build}/tests/interop/matrix/interop_matrix_iwarp"


def list_cells(build, groups, only):
    """What the program would do with siw."""
    done = HostProgram([program_of(build), "run", "siw", "0", "--groups", groups, "--only", only, "--list"]).wait(20)
    if done.code != 0:
        raise RuntimeError(f"the matrix does not list its cells: {done}")
    return [line for line in map(json.loads, done.out.splitlines()) if "cell" in line]
