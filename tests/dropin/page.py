#!/usr/bin/env python3
"""docs/programs.md: written from the results of tests/dropin/run.py (--update RESULTS), or compared with the list of programs (--check): the page must
have a row for each, and no other."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from cells import CELLS  # noqa: E402

PAGE = os.path.join(HERE, "..", "..", "docs", "programs.md")
HEAD = """# Programs that run over iwarp-run

<!-- Written by tests/dropin/page.py from the results of a run. -->

Debian's programs, exactly as packaged, against themselves over loopback: `./tests/run --group dropin` runs them, checks exit codes on
both sides, what they print, and that nothing unexpected is on standard error. [iwarp-run.md](iwarp-run.md) tells how to use it and what is not there.

| package | version | program | result |
|---|---|---|---|
"""


def row(package, version, name, result):
    name = name.replace("|", "\\|")
    return f"| {package} | {version} | `{name}` | {result} |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", metavar="RESULTS")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.update:
        with open(options.update, encoding="utf-8") as file:
            results = json.load(file)
        with open(PAGE, "w", encoding="utf-8") as out:
            out.write(HEAD)
            for r in results:
                out.write(row(r["package"], r["version"], r["name"], "fails: " + r["wrong"] if r["wrong"] else r["note"] or "runs"))
    if options.check:
        with open(PAGE, encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("| ") and "`" in line]
        there = [(line.split(" | ")[0][2:], line.split("`")[1]) for line in lines]
        wanted = [(c.package, c.name.replace("|", "\\|")) for c in CELLS]
        if there != wanted:
            print("docs/programs.md is not what tests/dropin/cells.py lists; run tests/dropin/page.py --update with the results of a run")
            print(f"first difference: {next((a, b) for a, b in zip(there + [None], wanted + [None]) if a != b)}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
