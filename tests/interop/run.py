#!/usr/bin/env python3
"""Runs the interop lab: this project's programs against a siw host. One line per cell; the last line is "N passed, N failed".
Exit codes: 0 all passed, 1 some failed, 77 skipped (the reason is printed)."""
import argparse
import fnmatch
import json
import os
import shutil
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import scenarios  # noqa: E402
from cells import Mismatch, Outcome  # noqa: E402
from lab import private  # noqa: E402
from lab.lab import GuestLost, Lab  # noqa: E402

PROGRAMS = {"ip": "iproute2", "rdma": "iproute2", "tcpdump": "tcpdump", "rping": "rdmacm-utils"}
SKIPPED = 77


def what_is_missing(kernel):
    """Why the lab cannot run here, or None."""
    if os.geteuid() != 0:
        return "it needs root, for a network namespace and a tap"
    for program, package in PROGRAMS.items():
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return f"{program} is not installed (package {package})"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    if not kernel:
        return "no siw kernel: IWARP_SIW_KERNEL is not set (tests/interop/build-siw-kernel makes one)"
    if not os.access(kernel, os.X_OK):
        return f"IWARP_SIW_KERNEL names no program: {kernel}"
    return None


class Runner:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.outcomes = []
        self.lab = None

    def run(self):
        began = time.monotonic()
        interrupted = False
        try:
            self.lab = Lab(os.path.abspath(self.options.kernel), os.path.abspath(self.options.build), self.folder)
            for scenario in scenarios.all_of(self.options.build):
                self.run_scenario(scenario)
        except KeyboardInterrupt:
            interrupted = True
            print("interrupted", file=sys.stderr)
        finally:
            if self.lab:
                self.lab.close()
        self.write_results()
        count = {result: [o for o in self.outcomes if o.result == result] for result in ("passed", "failed", "skipped")}
        print(f"{time.monotonic() - began:.0f} s, {self.lab.boots if self.lab else 0} boots of the siw host")
        for outcome in count["failed"]:
            print(f"failed: {outcome.cell.name}: {outcome.note}")
        # The counts must not look like success when not everything was run.
        lost = int(interrupted or not self.outcomes)
        print(f"{len(count['passed'])} passed, {len(count['failed']) + lost} failed"
              + (f", {len(count['skipped'])} skipped" if count["skipped"] else ""))
        return 1 if count["failed"] or lost else 0

    def run_scenario(self, scenario):
        cells = [c for c in scenario.cells() if fnmatch.fnmatch(c.name, f"*{self.options.cells}*")]
        if not cells:
            return
        with self.lab.recording(scenario.name, snap=256):
            if scenario.batch:
                self.attempt(lambda lab: scenario.run_batch(lab, cells, self.record))
            else:
                for cell in cells:
                    self.run_cell(scenario, cell)
        if not any(o.result == "failed" for o in self.outcomes if o.cell.scenario == scenario.name):
            os.remove(os.path.join(self.folder, scenario.name + ".pcap"))  # nobody will want to look at it

    def run_cell(self, scenario, cell):
        began = time.monotonic()
        note = self.attempt(lambda lab: scenario.run(lab, cell), cell)
        result = "failed" if isinstance(note, Exception) else "passed"
        self.record(Outcome(cell, result, str(note or ""), time.monotonic() - began))

    def record(self, outcome):
        self.outcomes.append(outcome)
        word = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}[outcome.result]
        print(f"{word} {outcome.seconds:5.2f} s  {outcome.cell.name}" + (f": {outcome.note}" if outcome.note else ""), flush=True)

    def attempt(self, action, cell=None):
        """What action(lab) returns, or the exception that speaks against the cell."""
        self.lab.panic_expected = False
        try:
            if cell:
                self.lab.set_mtu(cell.mtu)
                self.lab.boot()
            note = action(self.lab)
            if not self.lab.guest.alive() and not self.lab.panic_expected:
                return GuestLost(f"the siw host is gone afterwards: {self.lab.guest.last_words()}")
            return note
        except (Mismatch, GuestLost) as problem:
            return problem
        except Exception as problem:  # a mistake in the lab: the others still run
            traceback.print_exc()
            return problem
        finally:
            self.lab.stop_programs()

    def write_results(self):
        if self.options.results:
            with open(self.options.results, "w", encoding="utf-8") as file:
                json.dump([outcome.record() for outcome in self.outcomes], file, indent=1, ensure_ascii=False)
                file.write("\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder of this project")
    parser.add_argument("--kernel", default=os.environ.get("IWARP_SIW_KERNEL"), help="default: IWARP_SIW_KERNEL")
    parser.add_argument("--cells", default="", help="only cells whose name has this in it (a pattern)")
    parser.add_argument("--results", help="write the outcomes as JSON into this file")
    parser.add_argument("--keep", help="copy logs and recordings into this folder")
    parser.add_argument("--list", action="store_true", help="print the names of all cells, run nothing")
    parser.add_argument("--no-skip", action="store_true", help="fail where the lab cannot run, instead of skipping")
    return parser.parse_args()


def main():
    options = parse()
    if options.list:
        for scenario in scenarios.all_of(options.build):
            for cell in scenario.cells():
                print(cell.name)
        return 0
    missing = what_is_missing(options.kernel)
    if missing:
        print(f"{'failed' if options.no_skip else 'skipped'}: {missing}")
        print("0 passed, 1 failed" if options.no_skip else "0 passed, 0 failed, 1 skipped")
        return 1 if options.no_skip else SKIPPED
    # Outlives the namespaces, which end with their mounts before the folder is removed.
    with tempfile.TemporaryDirectory(prefix="iwarp-interop-") as folder:
        code = private.run(lambda: Runner(options, folder).run())
        if options.keep:
            shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
