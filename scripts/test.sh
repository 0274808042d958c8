#!/usr/bin/env bash
# Runs the checks, cheapest first, and stops at the first that fails.
# usage: scripts/test.sh [style] [release] [consumer] [cuda] [long] [asan] [tidy] [browser]    the first four when none is named
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
started=$SECONDS

# Tests that take long and rarely find what the others do not: large models on plain kernels, whole searches, an integer program.
long_tests='WorkspaceLimit\.EveryVariant|ExactInPlace\.|/Exact\.|IntegerProgram\.|Frontiers\.LessBudget|Zoo\..*/(resnet_18|resnet_50|vgg_16)_on_reference'

# stage <name> <command...>: runs one check, says its name and its time.
stage() {
  local name=$1 begin=$SECONDS
  shift
  echo "==> $name"
  if ! "$@"; then
    echo "FAILED: $name, after $((SECONDS - begin)) s" >&2
    exit 1
  fi
  echo "    $name: $((SECONDS - begin)) s"
}

check_format() {
  scripts/sources.sh | xargs -0 clang-format --dry-run -Werror || { echo "run: make format" >&2; return 1; }
}

configure() { cmake --preset "$1" -DSNUG_BUILD_TESTS=ON >"build/configure_$1.log" 2>&1 || { cat "build/configure_$1.log"; return 1; }; }
build() { configure "$1" && cmake --build --preset "$1" -j "$jobs"; }
run_ctest() { ctest --preset "$1" -j "$jobs" "${@:2}"; }

# An outside project must find, build against and run with what `cmake --install` leaves.
check_consumer() {
  local folder=$PWD/build/consumer
  build release && rm -rf "$folder" && cmake --install build/release --prefix "$folder/installed" >/dev/null &&
    cmake -G Ninja -S tests/consumer -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/installed" >/dev/null &&
    cmake --build "$folder/build" -j "$jobs" && "$folder/build/consumer"
}

# Builds and links the plugin for every architecture; nothing runs, so no GPU is needed.
check_cuda() {
  local nvcc
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "    skipped: no nvcc"; return 0; }
  CUDACXX=$nvcc configure cuda && cmake --build --preset cuda -j "$jobs" --target snug_cuda
}

# The memory report's page, looked at in Chromium.
check_browser() {
  scripts/setup.sh browser && configure release && cmake --build --preset release -j "$jobs" --target snug && node --test tests/browser/report_test.mjs
}

check_tidy() { configure release && scripts/tidy.py build/release "$jobs"; }

style() {
  stage "format" check_format
  stage "include order, self-test" scripts/check_includes.py --self-test
  stage "include order" scripts/check_includes.py
  stage "words" scripts/check_words.sh
  stage "counts, self-test" scripts/check_counts.py --self-test
  stage "counts" scripts/check_counts.py
  stage "experiments, self-test" bench/table3.py --self-test
  stage "result pages, self-test" bench/results.py --self-test
  stage "result pages" bench/results.py --check
}
release() {
  stage "release build" build release
  stage "release tests" run_ctest release -E "$long_tests"
}
consumer() { stage "consumer project" check_consumer; }
asan() {
  stage "asan build" build asan
  stage "asan tests" run_ctest asan -E "$long_tests"
}
long() {
  stage "release build" build release
  stage "long tests" run_ctest release -R "$long_tests"
}
cuda() { stage "CUDA plugin" check_cuda; }
tidy() { stage "clang-tidy" check_tidy; }
browser() { stage "report in a browser" check_browser; }

if (($# == 0)); then set -- style release consumer cuda; fi
for group in "$@"; do
  case $group in
    style | release | consumer | cuda | long | asan | tidy | browser) ;;
    *) echo "usage: scripts/test.sh [style] [release] [consumer] [cuda] [long] [asan] [tidy] [browser]" >&2 && exit 2 ;;
  esac
done

scripts/setup.sh check
mkdir -p build
for group in "$@"; do "$group"; done
echo "all passed: $* ($((SECONDS - started)) s)"
