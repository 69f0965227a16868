#!/usr/bin/env bash
# check.sh BUILD PREFIX COMPILER KIND: one way of using what `cmake --install` installs. `prefix` comes first: it installs
# and moves the tree to PREFIX, so that nothing can depend on where it was installed to.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 prefix=$2 compiler=$3 kind=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# with_cmake FOLDER: configures, builds and runs the project in FOLDER, copied out of the tree.
with_cmake() {
  cp -r "$here/$1" "$scratch/$1"
  cmake -S "$scratch/$1" -B "$scratch/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" \
    "-DCMAKE_PREFIX_PATH=$prefix"
  cmake --build "$scratch/build"
  "$scratch/build/program"
}

# The folder of iwarp.pc: lib/pkgconfig, or lib/x86_64-linux-gnu/pkgconfig under a distribution's own prefix.
pc_folder() { dirname "$(find "$prefix" -name iwarp.pc | head -n 1)"; }

case $kind in
  prefix)
    rm -rf "$prefix"
    cmake --install "$build" --prefix "$scratch/prefix"
    mkdir -p "$(dirname "$prefix")"
    mv "$scratch/prefix" "$prefix"
    # Neither the build tree nor the place of installation may be written into what others read.
    if grep -rIlF -e "$build" -e "$scratch" "$prefix"; then
      echo "these installed files name the build tree or the first prefix"
      exit 1
    fi
    ;;
  cmake_whole) with_cmake whole ;;
  cmake_one_layer) with_cmake one_layer ;;
  pkg_config)
    PKG_CONFIG_PATH=$(pc_folder)
    export PKG_CONFIG_PATH
    pkg-config --print-errors --exists 'iwarp >= 0.1'
    read -ra flags < <(pkg-config --cflags iwarp)
    read -ra libraries < <(pkg-config --libs iwarp)
    "$compiler" -std=c++20 "${flags[@]}" "$here/whole/program.cpp" "${libraries[@]}" -o "$scratch/program"
    "$scratch/program"
    ;;
  headers)
    include=$prefix/include/iwarp
    (cd "$include" && find . -name '*.hpp' -printf '#include "%P"\n' | sort) >"$scratch/all.cpp"
    [[ -s $scratch/all.cpp ]] || { echo "no header was installed"; exit 1; }
    "$compiler" -std=c++20 -fsyntax-only "-I$include" "$scratch/all.cpp"
    ;;
  *) echo "check.sh: no such check: $kind"; exit 2 ;;
esac
