#!/usr/bin/env bash
# Installs the Debian packages that are missing; does nothing when all are there.
# usage: scripts/setup.sh build    what building needs
#        scripts/setup.sh check    and what formatting, linting and testing need
#        scripts/setup.sh browser  and what looking at the memory report's page needs
set -euo pipefail

packages=(cmake g++ git libbenchmark-dev libcli11-dev libdnnl-dev libfmt-dev libgtest-dev libhwy-dev libjpeg62-turbo-dev
  libpng-dev libtomlplusplus-dev ninja-build nlohmann-json3-dev python3)
# libomp-dev: clang-tidy reads the OpenMP sources with clang's own omp.h.
if [[ ${1:-build} == check ]]; then packages+=(clang-format clang-tidy coinor-cbc libomp-dev); fi
if [[ ${1:-build} == browser ]]; then
  packages+=(chromium fonts-dejavu-core nodejs)
  command -v npm >/dev/null || packages+=(npm)  # a newer nodejs than Debian's brings its own
fi

# Playwright, which drives the browser, in the version and with the checksum that package-lock.json names.
install_playwright() {
  local folder
  folder=$(dirname "$0")/../tests/browser
  if cmp -s "$folder/package-lock.json" "$folder/node_modules/installed.json"; then return; fi
  echo "setup: installing Playwright"
  if ! npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error; then
    echo "setup: Playwright could not be installed; check that npm reaches its registry, then run: npm ci --prefix tests/browser" >&2
    exit 1
  fi
  cp "$folder/package-lock.json" "$folder/node_modules/installed.json"
}
finish() {
  if [[ ${1:-build} == browser ]]; then install_playwright; fi
  exit 0
}

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian system; if the build stops, install your system's counterparts of: ${packages[*]}" >&2
  finish "$@"
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [[ $status != installed ]]; then missing+=("$package"); fi
done
if ((${#missing[@]} == 0)); then finish "$@"; fi

as_root=()
if ((EUID != 0)); then as_root=(sudo); fi
refuse() {
  echo "setup: $1; please have an administrator run: apt-get install ${missing[*]}" >&2
  exit 1
}
if ((EUID != 0)) && ! command -v sudo >/dev/null; then refuse "packages are missing and this user cannot install them (no sudo)"; fi

echo "setup: installing ${missing[*]}"
# `env`, so that the setting also passes through sudo.
install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
"${as_root[@]}" apt-get update -q || echo "setup: the package lists could not be refreshed; going on with the ones here" >&2
"${as_root[@]}" "${install[@]}" || refuse "the packages could not be installed"
finish "$@"
