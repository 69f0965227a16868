# Shared by the linters: `root` is the tree to look at, problem() reports, verdict() ends the script. Sourced, never run.
# A linter prints one line per problem, "file:line: what is wrong", and exits 1; 77 means it could not look (ctest: skipped).
# shellcheck shell=bash
set -euo pipefail
root=$(cd "$1" && pwd)
problems=0
layers="base mpa ddp rdmap tcp_glue verbs"
core="base mpa ddp rdmap" # sans-IO, and compiled by clang too
: "$layers" "$core"

problem() {
  echo "$1: $2"
  problems=$((problems + 1))
}

# Problems on stdin, one a line, printed and counted.
problems_from() {
  local line
  while IFS= read -r line; do
    echo "$line"
    problems=$((problems + 1))
  done
}

verdict() {
  if ((problems)); then
    echo "${0##*/}: $problems problems"
    exit 1
  fi
  exit 0
}

need() {
  command -v "$1" >/dev/null || {
    echo "skipped: $1 is not installed"
    exit 77
  }
}

# tracked PATTERN...: the project's files that match, relative to the root, one a line. Outside a git checkout (a source
# archive, a linter's self-test) every file counts but those of build folders.
tracked() {
  local pattern file
  if [[ $(git -C "$root" rev-parse --show-toplevel 2>/dev/null) == "$root" ]]; then
    git -C "$root" ls-files -- "$@"
  else
    (cd "$root" && find . -name .git -prune -o -path './build*' -prune -o -type f -printf '%P\n') |
      while IFS= read -r file; do
        for pattern in "$@"; do
          # shellcheck disable=SC2053  # a pattern, as git's own
          [[ $file != $pattern ]] || { printf '%s\n' "$file"; break; }
        done
      done
  fi | while IFS= read -r file; do
    [[ ! -f $root/$file ]] || printf '%s\n' "$file"
  done | sort
}

# sources FOLDER...: the C++ files below these folders.
sources() {
  local folder
  for folder in "$@"; do tracked "$folder/*.hpp" "$folder/*.cpp"; done
}
