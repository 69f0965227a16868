#!/usr/bin/env python3
"""links.py ROOT: every relative link in the Markdown files leads to a file, and every #anchor to a heading in it."""
import os
import re
import subprocess
import sys

root = os.path.realpath(sys.argv[1])


def tracked():
    top = subprocess.run(["git", "-C", root, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False)
    if top.returncode == 0 and os.path.realpath(top.stdout.strip()) == root:
        names = subprocess.run(["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True, check=True)
        return [name for name in names.stdout.splitlines() if os.path.exists(os.path.join(root, name))]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".git", "build"))]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files if name.endswith(".md")]
    return sorted(found)


def lines_outside_code(path):
    fenced = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced:
                yield number, re.sub(r"`[^`]*`", lambda code: "x" * len(code.group()), line), line


def anchors(path):
    """The names GitHub gives to headings: lower case, punctuation dropped, blanks to hyphens, -1 -2 for repetitions."""
    names = {}
    for _, _, line in lines_outside_code(path):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            name = re.sub(r"[^\w\- ]", "", heading.group(1).lower()).replace(" ", "-")
            seen = names.get(name, 0)
            names[name] = seen + 1
            if seen:
                names[f"{name}-{seen}"] = 1
    return names


problems = 0
for name in tracked():
    path = os.path.join(root, name)
    for number, line, _ in lines_outside_code(path):
        targets = re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", line)
        targets += re.findall(r"^\s*\[[^\]]+\]:\s*(\S+)", line)
        for target in targets:
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            relative, _, anchor = target.partition("#")
            goal = os.path.normpath(os.path.join(os.path.dirname(path), relative)) if relative else path
            if not os.path.exists(goal):
                why = "there is no such file"
            elif os.path.commonpath([goal, root]) != root:
                why = "it leads out of the project"
            elif anchor and goal.endswith(".md") and anchor not in anchors(goal):
                why = "no heading of that name there"
            else:
                continue
            print(f"{name}:{number}: link to {target}: {why}")
            problems += 1
if problems:
    sys.exit(f"links.py: {problems} problems")
