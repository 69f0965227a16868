#!/usr/bin/env bash
# format.sh ROOT: every tracked C++ file is as clang-format writes it.
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need clang-format
cd "$root"
# Only the lines that name a place; the source excerpts after them say nothing that running clang-format -i does not fix.
problems_from < <(tracked '*.hpp' '*.cpp' | xargs -r -d '\n' -P 2 -n 16 clang-format --dry-run -Werror --style=file 2>&1 |
  grep -E '^[^ ]+:[0-9]+:[0-9]+:' || true)
((problems == 0)) || echo "fix: clang-format -i FILE..."
verdict
