#!/usr/bin/env bash
# Prints the C++ and CUDA sources of the repository, separated by NUL.
set -euo pipefail
cd "$(dirname "$0")/.."
folders=()
for folder in src include tests examples bench; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
find "${folders[@]}" -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0
