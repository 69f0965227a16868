#!/usr/bin/env bash
# headers.sh ROOT COMPILER [FOLDER...]: every header of the folders compiles alone, included twice, with all warnings on;
# with a second compiler for the core the sources too, since those must build under clang for the fuzzers.
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
compiler=$2
shift 2
need "$compiler"
cd "$root"

# shellcheck disable=SC2317  # called by the inner shell
compile() {
  local file=$1 out flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum -Werror -I.)
  if [[ $file == *.hpp ]]; then
    out=$(printf '#include "%s"\n#include "%s"\n' "$file" "$file" | "$compiler" "${flags[@]}" -x c++ - 2>&1) && return
    printf '%s: this header does not compile alone under %s:\n%s\n' "$file" "$compiler" "$out"
  else
    out=$("$compiler" "${flags[@]}" "$file" 2>&1) && return
    printf '%s: this source does not compile under %s:\n%s\n' "$file" "$compiler" "$out"
  fi
}
export -f compile
export compiler
patterns=()
for folder in "$@"; do
  patterns+=("$folder/*.hpp")
  [[ $compiler != clang* ]] || patterns+=("$folder/*.cpp")
done
# shellcheck disable=SC2016  # $1 belongs to the inner shell
problems_from < <(tracked "${patterns[@]}" | xargs -r -d '\n' -P 2 -n 1 bash -c 'compile "$1"' _)
verdict
