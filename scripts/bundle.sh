#!/usr/bin/env bash
# Collects what another machine with an NVIDIA GPU needs to run snug, the conformance tests, the benchmarks, the comparisons with PyTorch and transformers
# and the report's experiments, into build/bundle/ and packed into build/bundle.tar.xz: programs, plugin, scripts, and the shared libraries that such a machine may lack.
# CUDA's own libraries and cuDNN come from there; run.sh finds them.
# usage: scripts/bundle.sh [build folder]        default: build/cuda
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cuda}
bundle=build/bundle
limit_mb=60 # of the packed file

cmake --build "$build" -j "${JOBS:-$(nproc)}" --target snug snug_cuda snug_conformance_test step_bench parity driver_bytes run_a_recipe
rm -rf "$bundle" "$bundle.tar.xz"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/bench" "$bundle/recipes"
cp "$build/snug" "$build/libsnug_cuda.so" "$build/tests/snug_conformance_test" "$build/bench/step_bench" "$build/bench/parity" \
  "$build/bench/driver_bytes" "$build/examples/run_a_recipe" "$bundle/bin/"
cp bench/{against_torch,torch_step,language_against_torch,torch_language_step,learning_against_torch,against_transformers,exactness,gpu_check,table3}.py "$bundle/bench/"
cp recipes/wrn-28-2-6.7MB.toml "$bundle/recipes/"
mkdir "$bundle/bench/experiments"
cp bench/experiments/*.py "$bundle/bench/experiments/"
git describe --always --dirty --abbrev=12 >"$bundle/commit"
strip --strip-unneeded "$bundle"/bin/*

# The C library and its kin are newer there, or the same; NVIDIA's libraries are large, and must fit the driver.
left_there='^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libz|libcuda|libcudart|libcudnn|libcublas|libcublasLt|libnvrtc)[.-]'
ldd "$bundle"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u | while read -r name path; do
  if [[ ! $name =~ $left_there ]]; then cp -L "$path" "$bundle/lib/$name"; fi
done

cat >"$bundle/run.sh" <<'RUN'
#!/usr/bin/env bash
# usage: run.sh snug ... | run.sh conformance [gtest options] | run.sh bench <step_bench options> | run.sh against_torch <its options>
#        run.sh language <its options>: language models beside PyTorch (bench/language_against_torch.py)
#        run.sh parity <its options>: language models beside transformers (bench/against_transformers.py); it runs run.sh parity_pass
#        run.sh learning <its options>: does a language model learn as PyTorch's does? (bench/learning_against_torch.py)
#        run.sh check <its options>: all that a machine with a GPU must show (bench/gpu_check.py)
#        run.sh example run_a_recipe cuda
#        run.sh exactness <its options>: are the bits the same under every checkpointing strategy?
#        run.sh table3 <its options>: the report's experiments
#        run.sh driver_bytes <its options>: what the driver takes on the GPU, step by step
#        run.sh      (a bit of everything)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# The folder of a library: PyTorch's packages first (their cuDNN is the newest), then the toolkit's and the system's.
folder_of() {
  local packages
  packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null || true)
  find ${packages:+"$packages/nvidia"} /usr/local/cuda*/lib64/ /usr/local/cuda*/lib/ /usr/local/cuda*/targets/*/lib/ \
    /usr/lib/x86_64-linux-gnu /opt -name "$1" 2>/dev/null | head -n 1 | xargs -r dirname
}
path=$here/lib
for library in libcudnn.so.9 libcublasLt.so.13 libnvrtc.so.13; do
  folder=$(folder_of "$library")
  if [[ -n $folder ]]; then path+=:$folder; else echo "run.sh: $library was not found; going on without" >&2; fi
done
outside=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export SNUG_REQUIRE_CUDA=1 OMP_WAIT_POLICY=passive
echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" >&2

what=${1:-all}
shift || true
case $what in
  snug) exec "$here/bin/snug" "$@" ;;
  conformance) exec "$here/bin/snug_conformance_test" --gtest_filter='*cuda*' "$@" ;;
  bench) exec "$here/bin/step_bench" "$@" ;;
  driver_bytes) exec "$here/bin/driver_bytes" "$@" ;;
  # PyTorch brings libraries of its own; step_bench comes back here for ours.
  against_torch) LD_LIBRARY_PATH=$outside exec python3 "$here/bench/against_torch.py" --device cuda "$@" ;;
  language) LD_LIBRARY_PATH=$outside exec python3 "$here/bench/language_against_torch.py" "$@" ;;
  parity) LD_LIBRARY_PATH=$outside exec python3 "$here/bench/against_transformers.py" "$@" ;;
  parity_pass) exec "$here/bin/parity" "$@" ;;
  learning) LD_LIBRARY_PATH=$outside exec python3 "$here/bench/learning_against_torch.py" "$@" ;;
  check) LD_LIBRARY_PATH=$outside exec python3 "$here/bench/gpu_check.py" "$@" ;;
  example) exec "$here/bin/$1" "${@:2}" ;;
  exactness) exec python3 "$here/bench/exactness.py" "$@" ;;
  table3) exec python3 "$here/bench/table3.py" "$@" ;;
  all)
    "$here/bin/snug_conformance_test" --gtest_filter='*cuda*'
    failed=$?
    for precision in fp32 fp16; do
      "$here/bin/step_bench" wrn-28-2 --batch 100 --device cuda --precision $precision --steps 200 --json || failed=1
    done
    exit $failed
    ;;
  *) echo "usage: run.sh [snug|conformance|bench|driver_bytes|against_torch|language|parity|parity_pass|learning|check|example|exactness|table3|all] ..." >&2 && exit 2 ;;
esac
RUN
chmod +x "$bundle/run.sh"

find "$bundle" -type f -printf '%10s  %P\n'
tar -C "$(dirname "$bundle")" -c "$(basename "$bundle")" | xz -T0 -6 >"$bundle.tar.xz"
size_mb=$(($(du -sk "$bundle.tar.xz" | cut -f 1) / 1024))
if ((size_mb >= limit_mb)); then
  echo "bundle.sh: $bundle.tar.xz has $size_mb MB; it must stay below $limit_mb" >&2
  exit 1
fi
echo "$bundle.tar.xz: $size_mb MB"
