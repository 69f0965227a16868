#!/usr/bin/env bash
# self_test.sh: every linter passes a good tree and finds what is wrong in a bad one, naming file and line. The trees are
# made here, so that no bad file has to live in the project.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# put FILE: stdin becomes that file of the tree.
put() {
  mkdir -p "$tree/$(dirname "$1")"
  cat >"$tree/$1"
}

# finds PATTERN LINTER [ARG...]: the linter fails, and one of its lines matches.
finds() {
  local pattern=$1 linter=$2 out code=0
  shift 2
  out=$("$here/$linter" "$tree" "$@" 2>&1) || code=$?
  if ((code != 1)) || ! grep -qE -e "$pattern" <<<"$out"; then
    printf '%s: expected exit code 1 and a line like "%s", got %d:\n%s\n' "$linter" "$pattern" "$code" "$out"
    failures=$((failures + 1))
  fi
}

# accepts LINTER [ARG...]: the linter finds nothing wrong (or says that it cannot look).
accepts() {
  local linter=$1 out code=0
  shift
  out=$("$here/$linter" "$tree" "$@" 2>&1) || code=$?
  if ((code != 0 && code != 77)); then
    printf '%s: expected to pass a good tree, got %d:\n%s\n' "$linter" "$code" "$out"
    failures=$((failures + 1))
  fi
}

header='// Internal to ddp, mpa.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once
'
cp "$here/../../.clang-format" "$here/../../.clang-tidy" "$tree"
put mpa/good.hpp <<<"$header"'
#include <cstdint>

inline std::uint32_t twice(std::uint32_t x) { return 2 * x; }'
put mpa/good.cpp <<<'#include "mpa/good.hpp"

std::uint32_t four_times(std::uint32_t x);
std::uint32_t four_times(std::uint32_t x) { return twice(twice(x)); }'
# shellcheck disable=SC2016  # a backquote of Markdown
put README.md <<<'# Title

See [the header](mpa/good.hpp), [here](#title), [there](https://example.org/x) and `[not](a link)`.'
g++ -std=c++20 -I"$tree" -c "$tree/mpa/good.cpp" -o "$tree/good.o"
mkdir -p "$tree/build/mpa"
ar rcs "$tree/build/mpa/libiwarp_mpa.a" "$tree/good.o"
compile_commands() {
  printf '[{"directory": "%s", "command": "c++ -std=c++20 -I%s -c %s", "file": "%s"}]\n' \
    "$tree" "$tree" "$tree/$1" "$tree/$1" >"$tree/build/compile_commands.json"
}
compile_commands mpa/good.cpp
accepts layers.sh
accepts words.sh
accepts links.py
accepts format.sh
accepts headers.sh g++ mpa
accepts headers.sh clang++ mpa
accepts purity.sh "$tree/build"
accepts tidy.sh "$tree/build"

put mpa/bad.cpp <<<'#include "mpa/good.hpp"
#include "ddp/header.hpp"'
finds '^mpa/bad.cpp:2: mpa may not include "ddp/header.hpp"' layers.sh
put mpa/bad.cpp <<<'#include <mutex>'
finds '^mpa/bad.cpp:1: .*<mutex>' layers.sh
put mpa/bad.cpp <<<'#include <sys/socket.h>'
finds '^mpa/bad.cpp:1: .*<sys/socket.h>' layers.sh
rm "$tree/mpa/bad.cpp"
put tcp_glue/bad.cpp <<<'#include "mpa/good.hpp"'
finds '^tcp_glue/bad.cpp:1: ' layers.sh
rm -r "$tree/tcp_glue"

put mpa/bad.hpp <<<'#pragma once'
finds '^mpa/bad.hpp:1: a header begins with' words.sh
put mpa/bad.hpp <<<'// Public API.
namespace iwarp::mpa {}'
finds '^mpa/bad.hpp:1: the opening comment says "Threading' words.sh
put mpa/bad.hpp <<<"$header"'inline void f() { std::cout << 1; }'
finds '^mpa/bad.hpp:4: a layer writes nothing' words.sh
put mpa/bad.hpp <<<"$header"'inline std::vector<int> f() { return {}; }'
finds '^mpa/bad.hpp: this header does not compile alone under g\+\+' headers.sh g++ mpa
if command -v clang++ >/dev/null; then
  finds '^mpa/bad.hpp: this header does not compile alone under clang' headers.sh clang++ mpa
fi
rm "$tree/mpa/bad.hpp"
put tests/bad_test.cpp <<<'void f() { std::this_thread::sleep_for(1s); }'
finds '^tests/bad_test.cpp:1: a test waits' words.sh
rm -r "$tree/tests"
printf 'see %shome/me/x\n' / | put notes.txt
finds '^notes.txt:1: names a path of one machine' words.sh
rm "$tree/notes.txt"

put docs/page.md <<<'# Page
[gone](../nowhere.md) and [wrong](../README.md#no-such-heading)'
finds '^docs/page.md:2: link to ../nowhere.md: there is no such file' links.py
finds '^docs/page.md:2: link to ../README.md#no-such-heading: no heading' links.py
rm -r "$tree/docs"

if command -v clang-format >/dev/null; then
  put mpa/bad.cpp <<<'int   f( ) ;'
  finds '^mpa/bad.cpp:1:' format.sh
  rm "$tree/mpa/bad.cpp"
fi
if command -v clang-tidy >/dev/null; then
  put mpa/bad.cpp <<<'#include <string>
#include <utility>
std::string f(std::string a);
std::string f(std::string a) {
  std::string b = std::move(a);
  return a + b;
}'
  compile_commands mpa/bad.cpp
  finds '^mpa/bad.cpp:6:.*use-after-move' tidy.sh "$tree/build"
  rm "$tree/mpa/bad.cpp"
fi

put mpa/bad.cpp <<<'#include <sys/socket.h>
#include <chrono>
int f() { return socket(0, 0, 0); }
long g() { return std::chrono::steady_clock::now().time_since_epoch().count(); }'
g++ -std=c++20 -c "$tree/mpa/bad.cpp" -o "$tree/bad.o"
ar rcs "$tree/build/mpa/libiwarp_mpa.a" "$tree/bad.o"
finds '^libiwarp_mpa.a\(bad.o\): calls socket' purity.sh "$tree/build"
finds '^libiwarp_mpa.a\(bad.o\): uses std::chrono.*steady_clock' purity.sh "$tree/build"
rm "$tree/build/mpa/libiwarp_mpa.a"
finds 'libiwarp_mpa.a: is not built' purity.sh "$tree/build"

((failures == 0)) || exit 1
echo "every linter finds what it should"
