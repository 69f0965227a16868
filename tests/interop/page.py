#!/usr/bin/env python3
"""docs/interop.md: written from the results of a run of the lab (--update RESULTS), as is the count in README.md; or compared with the list of its scenarios
(--check): the page must have a row for all that the lab does, and no other."""
import argparse
import collections
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import scenarios  # noqa: E402

README = os.path.join(HERE, "..", "..", "README.md")
COUNT_IN_README = re.compile(r"\[(\d+) cells\]\(docs/interop\.md\)")
PAGE = os.path.join(HERE, "..", "..", "docs", "interop.md")
NOTES = os.path.join(HERE, "siw_differences.md")
FINDINGS = os.path.join(HERE, "matrix", "siw-findings.md")
HEAD = """# Interoperation with Linux siw

<!-- Written by tests/interop/page.py from the results of a run; the notes at the end are
tests/interop/siw_differences.md and tests/interop/matrix/siw-findings.md. -->

Everything below was run by `./tests/run --group interop`: this stack, on the host, against the siw driver of Linux 6.1 in a kernel of
its own (User Mode Linux), over kernel TCP and a tap. `→` points from who connects, or in the matrix from who acts, to the
other. A row stands for as many cells as its last column says, one for each combination of its settings.

"""
COLUMNS = ["what", "direction", "MTU", "IP", "CRC", "octets", "expected", "cells"]


def span(values):
    """"64, 3000, 60000", or the ends of a long list."""
    known = [v for v in values if v is not None]
    if not known:
        return ""
    if len(known) > 4:
        return f"{known[0]} to {known[-1]}"
    return ", ".join(str(v) for v in known)


def row_key(cell):
    return (cell["case"], cell["direction"], cell["expected"])


def rows(cells):
    """The columns of each row but the outcome, and its cells, in the order of running."""
    groups = collections.OrderedDict()
    for cell in cells:
        groups.setdefault(row_key(cell), []).append(cell)
    for (case, direction, expected), members in groups.items():
        def distinct(field):
            return sorted({m[field] for m in members if m[field] is not None})

        crc = "on, off" if len(distinct("crc")) == 2 else distinct("crc")[0]
        yield ([case, direction, span(distinct("mtu")), span(distinct("ip")), crc, span(distinct("size")), expected], members)


def outcome_of(members):
    count = collections.Counter(m["result"] for m in members)
    text = f"{count['passed']}"
    for word in ("failed", "skipped"):
        if count[word]:
            text += f", {count[word]} {word}"
    return text


def line(columns):
    return "| " + " | ".join(column.replace("|", "\\|") for column in columns) + " |\n"


def text_of(results, known):
    by_scenario = collections.OrderedDict((scenario.name, []) for scenario in known)
    for result in results:
        by_scenario[result["scenario"]].append(result)
    total = collections.Counter(result["result"] for result in results)
    text = HEAD + f"**{total['passed']} cells passed, {total['failed']} failed"
    text += f", {total['skipped']} were skipped" if total["skipped"] else ""
    text += "**, in {} scenarios.\n".format(sum(1 for cells in by_scenario.values() if cells))
    for scenario in known:
        cells = by_scenario[scenario.name]
        if not cells:
            continue
        text += f"\n## {scenario.title}\n\n{scenario.about}\n\n" + line(COLUMNS) + "|" + "---|" * len(COLUMNS) + "\n"
        whys = []
        for columns, members in rows(cells):
            mark = ""
            for why in sorted({m["note"] for m in members if m["result"] != "passed" and m["note"]}):
                if why not in whys:
                    whys.append(why)
                mark += f" ({whys.index(why) + 1})"
            text += line([*columns, outcome_of(members) + mark])
        if whys:
            text += "\n" + "".join(f"{number}. {why}\n" for number, why in enumerate(whys, 1))
    return text + "\n" + notes()


def notes():
    """What was found out, from the two files that say it."""
    with open(NOTES, encoding="utf-8") as first, open(FINDINGS, encoding="utf-8") as second:
        return first.read() + "\n#" + second.read()


def table_rows(text):
    """The rows of the page's tables without their last column."""
    found = collections.Counter()
    for row in text.splitlines():
        if row.startswith("| ") and not row.startswith("| what "):
            found[row.rsplit(" | ", 1)[0]] += 1
    return found


def check(known):
    expected = collections.Counter()
    for scenario in known:
        for columns, _ in rows([as_record(cell) for cell in scenario.cells()]):
            expected[line([*columns, ""]).rsplit(" | ", 1)[0]] += 1
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    tables = text.partition("\n# What siw")[0]
    same_notes = text.endswith("\n" + notes())
    found = table_rows(tables)
    for row in (expected - found):
        print(f"docs/interop.md:1: the lab does this, the page does not tell: {row}")
    for row in (found - expected):
        print(f"docs/interop.md:1: the page tells this, the lab does not do it: {row}")
    if not same_notes:
        print("docs/interop.md:1: the notes differ from tests/interop/siw_differences.md and matrix/siw-findings.md")
    with open(README, encoding="utf-8") as readme:
        told = COUNT_IN_README.search(readme.read())
    same_count = told is not None and f"**{told[1]} cells passed" in text
    if not same_count:
        print("README.md:1: the number of cells is not that of docs/interop.md")
    if expected == found and same_notes and same_count:
        return 0
    print("docs/interop.md:1: run ./tests/run --group interop, then tests/interop/page.py --update BUILD/interop.json --build BUILD")
    return 1


def as_record(cell):
    return {field: getattr(cell, field) for field in ("case", "direction", "expected", "mtu", "ip", "crc", "size")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder of this project")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--update", metavar="RESULTS", help="write the page from these results")
    what.add_argument("--check", action="store_true", help="compare the page with the scenarios")
    options = parser.parse_args()
    known = scenarios.all_of(options.build)
    if options.check:
        return check(known)
    with open(options.update, encoding="utf-8") as file:
        results = json.load(file)
    text = text_of(results, known)
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(text)
    passed = sum(1 for result in results if result["result"] == "passed")
    with open(README, encoding="utf-8") as readme:
        text = COUNT_IN_README.sub(f"[{passed} cells](docs/interop.md)", readme.read())
    with open(README, "w", encoding="utf-8") as readme:
        readme.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
