#!/usr/bin/env bash
# layers.sh ROOT: each layer includes only what the layer table allows (tests/README.md), found by #include lines.
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

declare -A project=(
  [base]='^base/'
  [mpa]='^(base|mpa)/'
  [ddp]='^(base|mpa|ddp)/'
  [rdmap]='^(base|mpa|ddp|rdmap)/'
  [tcp_glue]='^(base|tcp_glue)/|^mpa/stream_engine\.hpp$'
  [verbs]='^(base|mpa|ddp|rdmap|tcp_glue|verbs)/'
  [tools/dump]='^(base|mpa|ddp|rdmap|tools/common|tools/dump)/|^tcp_glue/endpoint\.hpp$'
  [samples]='^(verbs|samples)/'
)
# A core layer is sans-IO: what of the standard library does I/O or knows threads stays out. <chrono> is there for its
# durations; that nobody reads a clock is purity.sh's matter.
impure='ctime|thread|mutex|shared_mutex|condition_variable|future|atomic|semaphore|latch|barrier|stop_token'
impure+='|coroutine|random|iostream|fstream|sstream|istream|ostream|streambuf|iomanip|cstdio|filesystem|csignal|locale'
core_system='^[a-z_]+$|^boost/endian/|^tl/expected\.hpp$'
mpa_system='^isa-l(/[a-z_]+)?\.h$|^(imm|nmm|smm|x86)intrin\.h$|^cpuid\.h$' # CRC32c kernels

for layer in "${!project[@]}"; do
  while IFS=: read -r file line text; do
    allowed=${project[$layer]}
    # The capture sample is about the wire, so it shows the layers themselves.
    [[ $file != samples/capture_fpdus* && $file != samples/support/tcp_capture* ]] || allowed='^(base|mpa|ddp|rdmap|verbs|samples)/'
    if [[ $text =~ \#[[:space:]]*include[[:space:]]*\"([^\"]+)\" ]]; then
      header=${BASH_REMATCH[1]}
      [[ $header =~ $allowed ]] || problem "$file:$line" "$layer may not include \"$header\" (layer table: $allowed)"
    elif [[ $text =~ \#[[:space:]]*include[[:space:]]*\<([^\>]+)\> && " $core " == *" $layer "* ]]; then
      header=${BASH_REMATCH[1]}
      if [[ $header =~ ^($impure)$ ]]; then
        problem "$file:$line" "$layer is sans-IO and may not include <$header>"
      elif [[ ! $header =~ $core_system && ! ($layer == mpa && $header =~ $mpa_system) ]]; then
        problem "$file:$line" "$layer may not include <$header>: standard library, Boost.Endian, tl::expected only"
      fi
    fi
  done < <(sources "$layer" | (cd "$root" && xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*include') || true)
done
verdict
