#!/usr/bin/env bash
# Fuzzes everything that reads files, one parser after the other; stops at the first finding.
# usage: scripts/fuzz.sh [seconds for each, default 600] [names: bleu cifar image metrics program recipe safetensors snapshot text tokenizer]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
if (($# == 0)); then set -- bleu cifar image metrics program recipe safetensors snapshot text tokenizer; fi

mkdir -p build/fuzz
cmake -G Ninja -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSNUG_BUILD_FUZZERS=ON -DSNUG_BUILD_TESTS=OFF >build/fuzz/configure.log
cmake --build build/fuzz -j "${JOBS:-$(nproc)}" --target "${@/%/_fuzz}"
for name in "$@"; do
  corpus=build/fuzz/corpus_$name
  mkdir -p "$corpus"
  echo "==> $name, $seconds s"
  (cd build/fuzz && "fuzz/${name}_fuzz" -max_total_time="$seconds" -print_final_stats=1 "corpus_$name" >"$name.log" 2>&1) ||
    { tail -40 "build/fuzz/$name.log"; echo "FOUND: see build/fuzz/$name.log" >&2; exit 1; }
  grep number_of_executed_units "build/fuzz/$name.log"
done
