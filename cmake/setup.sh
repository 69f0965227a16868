# Shared by samples/quickstart, tests/run and .ci/run: Debian packages, processors, building. Sourced, never run.
# Every function prints what it does on stdout, problems as one line on stderr, and returns non-zero for them.
# The caller sets `root`, the top folder of the project.
# shellcheck shell=bash disable=SC2034,SC2154

# Package sets. A program's own set is kept small, so that a first build waits for no more than it needs.
packages_build="cmake ninja-build g++ pkg-config libboost-dev libssl-dev libisal-dev libexpected-dev libpcap-dev
  libboost-iostreams-dev libcli11-dev libfmt-dev nlohmann-json3-dev libibverbs-dev librdmacm-dev"
packages_test="$packages_build libgtest-dev libgmock-dev libbenchmark-dev ccache tshark zstd
  clang clang-format clang-tidy python3 git chromium fonts-dejavu-core"
# A compiler's run-time for sanitizers and libFuzzer under clang; g++ brings its own.
packages_fuzz="$packages_test libclang-rt-14-dev"
# The interop lab: the siw host runs the programs of the machine it is on, our side is behind a tap.
packages_interop="rdmacm-utils ibverbs-providers iproute2 tcpdump"
# Programs of RDMA that the drop-in runs.
packages_dropin="ibverbs-utils rdmacm-utils perftest qperf fio libfabric-bin dapl2-utils python3-pyverbs iproute2 util-linux"
packages_siw_kernel="linux-source-6.1 flex bison bc libelf-dev make gcc xz-utils"

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# install_missing PACKAGE...: apt-get installs those that dpkg does not know as installed. Nothing missing: touches nothing.
install_missing() {
  local package missing=() as_root=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ! command -v apt-get >/dev/null; then
    complain "this needs Debian packages and there is no apt-get here: ${missing[*]}"
    return 1
  fi
  if ((EUID != 0)); then
    # Without a terminal nobody can type a password: -n makes sudo fail instead of waiting for one.
    if [[ -t 0 ]] && command -v sudo >/dev/null; then
      as_root=(sudo)
    elif sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      complain "missing packages, and neither root nor sudo to install them; as root: apt-get install ${missing[*]}"
      return 1
    fi
  fi
  say "installing ${#missing[@]} missing packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  local log
  log=$(mktemp) || return 1
  if "${apt[@]}" update >"$log" 2>&1 </dev/null &&
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
    rm -f "$log"
  else
    tail -n 20 "$log" >&2
    rm -f "$log"
    complain "apt-get could not install: ${missing[*]}"
    return 1
  fi
}

# The processors this process may use.
processors() { nproc; }

# configure FOLDER OPTION...: CMake with Ninja in FOLDER, through ccache where it is installed.
configure() {
  local folder=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake -S "$root" -B "$folder" -G Ninja "${launcher[@]}" "$@"
}
