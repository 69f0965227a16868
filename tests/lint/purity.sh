#!/usr/bin/env bash
# purity.sh ROOT BUILD: the compiled mpa, ddp and rdmap ask nobody for I/O, time, randomness or threads. Looks at the
# symbols that the archives leave undefined, so it sees what came in through any header.
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
build=$2
need nm

# Plain C functions, by their whole name (glibc's fortified forms are __NAME_chk, large-file forms NAME64).
io='socket|accept4?|connect|bind|listen|recv(from|msg|mmsg)?|send(to|msg|mmsg|file)?|p?(read|write)v?2?|open(at)?|close'
io+='|f(open|read|write|close|puts|putc|printf|flush)|printf|puts|p?poll|select|epoll_[a-z0-9_]+|io_uring[a-z0-9_]*|ioctl'
time='clock_[a-z]+|gettimeofday|time|(u|nano)?sleep'
random='getrandom|getentropy|rand(om)?(_r)?|RAND_[a-z_]+'
threads='pthread_[a-z0-9_]+|sem_[a-z]+|syscall'
banned_c="^(__)?($io|$time|$random|$threads)(64)?(_chk)?(@.*)?$"
# C++ names, demangled. std:: functions that happen to be called read or write are not banned, their classes are.
banned_cpp='steady_clock|system_clock|high_resolution_clock|std::(thread|jthread|mutex|random_device|condition_variable)'
banned_cpp+='|std::(basic_)?[io]?(f|string)?stream|boost::asio|std::this_thread'

looked=0
for layer in mpa ddp rdmap; do
  archive=$build/$layer/libiwarp_$layer.a
  if [[ ! -f $archive ]]; then
    [[ -z $(tracked "$layer/*.cpp") ]] || problem "$archive" "is not built, although $layer has sources"
    continue
  fi
  looked=$((looked + 1))
  member=
  while IFS= read -r text; do
    if [[ $text == *: ]]; then
      member=${text%:}
      continue
    fi
    symbol=${text##*U }
    plain=${symbol%% *}
    if [[ $plain =~ $banned_c ]]; then
      problem "libiwarp_$layer.a($member)" "calls $symbol: $layer is sans-IO"
    elif [[ $plain == _Z* ]] && name=$(c++filt "$plain") && [[ $name =~ $banned_cpp ]]; then
      problem "libiwarp_$layer.a($member)" "uses $name: $layer is sans-IO"
    fi
  done < <(nm -u "$archive" | sed 's/^ *//' | grep .)
done
((looked + problems)) || { echo "skipped: no layer has an archive yet"; exit 77; }
verdict
