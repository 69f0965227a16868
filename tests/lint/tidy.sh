#!/usr/bin/env bash
# tidy.sh ROOT BUILD: clang-tidy (.clang-tidy in the root) over the layers' sources, as BUILD's compile_commands.json
# compiles them. What passed is remembered in BUILD by the hash of its preprocessed text, so only changes cost time.
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
build=$2
need clang-tidy
need clang++
[[ -f $build/compile_commands.json ]] || { echo "skipped: $build has no compile_commands.json"; exit 77; }
mkdir -p "$build/tidy"

# shellcheck disable=SC2317  # called by the inner shell
check() {
  local file=$1 key mark out
  # -C keeps the comments: NOLINT is one.
  key=$({ cat "$root/.clang-tidy"; clang++ -std=c++20 -E -C -w -I"$root" "$root/$file" 2>/dev/null || date +%N; } | sha256sum)
  mark=$build/tidy/${key%% *}
  [[ ! -f $mark ]] || return 0
  if out=$(clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' \
    "$root/$file" 2>/dev/null); then
    : >"$mark"
  else
    out=${out//"$root/"/}
    grep -E '^[^ ]+:[0-9]+:[0-9]+: (warning|error)' <<<"$out" || echo "$file:1: clang-tidy failed: $out"
  fi
}
export -f check
export root build
# shellcheck disable=SC2016,SC2086  # $1 belongs to the inner shell; a list of layers
problems_from < <(for layer in $layers; do tracked "$layer/*.cpp"; done |
  xargs -r -d '\n' -P 2 -n 1 bash -c 'check "$1"' _ | sort -u)
verdict
