#!/usr/bin/env bash
# words.sh ROOT: things that a search finds. Paths of one machine, output in the layers, sleeping tests, header comments.
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

# search PATTERN WHY FILE...: every line that matches, but for those that say "lint: allow" and why.
search() {
  local pattern=$1 why=$2 file line text
  shift 2
  (($#)) || return 0
  while IFS=: read -r file line text; do
    [[ $text == *'lint: allow'* ]] || problem "$file:$line" "$why"
  done < <(grep -HnIE -e "$pattern" -- "$@" || true)
}

mapfile -t everything < <(tracked '*')
# shellcheck disable=SC2086  # a list of layers
mapfile -t layer_sources < <(sources $layers)
mapfile -t test_sources < <(tracked 'tests/*.cpp' 'tests/*.hpp')

search '(^|[^A-Za-z0-9_.}/-])/(work|home|root|tmp)/' 'names a path of one machine' "${everything[@]}"
search 'std::(cout|cerr|clog)|[^a-z_]f?printf *\(' 'a layer writes nothing to the terminal: use the trace sink or an error' \
  "${layer_sources[@]}"
search 'sleep_(for|until)|[^a-z_](u|nano)?sleep *\(' 'a test waits for a condition, it does not sleep' "${test_sources[@]}"

for file in "${layer_sources[@]}"; do
  [[ $file == *.hpp ]] || continue
  head -n 1 "$file" | grep -qE '^// (Internal to .+|Public API.*)\.$' ||
    problem "$file:1" 'a header begins with "// Internal to LAYERS." or "// Public API."'
  # A header that only includes others has nothing to say about threads.
  grep -q '^namespace' "$file" || continue
  head -n 15 "$file" | grep -q 'Threading:' || problem "$file:1" 'the opening comment says "Threading: ..."'
done
verdict
