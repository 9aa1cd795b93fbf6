# What runs on a machine with a GPU, which need not have a network, our distribution's packages or a compiler. Sourced by ./dev.
#
# `bundle` packs programs and the libraries they need; `gpu_test` and `gpu_bench` take them from build/cuda, or else from the
# bundle. CUDA's own libraries are not packed: they come from the machine's toolkit or PyTorch.

BUNDLE=build/bouquet-gpu.tar.xz
BUNDLE_LIMIT_MIB=22
GPU_PROGRAMS=(bouquet engine_timing engine_soak rose_backend_test rose_cuda_test rose_cuda_attention_test)
GPU_PROGRAMS+=(ragged_attention_bench kernels_bench)

# Shared libraries of a program but those that every Linux has.
libraries_of() {
  ldd "$@" | awk '/=> \// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' | sort -u
}

# The commit, `-changed` where files differ from it: what a machine without git says that it measured.
print_commit() {
  local changed=""
  git diff --quiet HEAD -- || changed=-changed
  echo "$(git rev-parse HEAD)$changed"
}

bundle() {
  local library bytes
  build cuda "${GPU_PROGRAMS[@]}"
  rm -rf build/bundle
  mkdir -p build/bundle/lib
  cp "${GPU_PROGRAMS[@]/#/build/cuda/}" build/bundle/
  for library in $(libraries_of "${GPU_PROGRAMS[@]/#/build/cuda/}"); do
    cp -L "$library" build/bundle/lib/
  done
  strip build/bundle/lib/*.so* "${GPU_PROGRAMS[@]/#/build/bundle/}"
  print_commit >build/bundle/COMMIT
  check_bundle
  tar -C build -cf - bundle | xz -T"$JOBS" -6 >"$BUNDLE"
  bytes=$(stat -c %s "$BUNDLE")
  say "bundle: $BUNDLE, $((bytes / 1024 / 1024)) MiB"
  [ "$bytes" -le $((BUNDLE_LIMIT_MIB * 1024 * 1024)) ] || die "the bundle is larger than $BUNDLE_LIMIT_MIB MiB"
}

# Nothing may come from the distribution, and the product must start.
check_bundle() {
  local outside
  outside=$(libraries_of "${GPU_PROGRAMS[@]/#/build/bundle/}" | grep -v "^$PWD/build/bundle/lib/" || true)
  [ -z "$outside" ] || die "the bundle's programs take libraries from outside: $outside"
  build/bundle/bouquet --version >/dev/null || die "the bundle's bouquet does not start"
}

# Prints the folder with the programs.
gpu_programs() {
  # Not what ./dev test leaves, which is without FA3.
  if [ -x build/cuda/engine_timing ] && grep -qs '^BOUQUET_FA3:BOOL=ON' build/cuda/CMakeCache.txt; then
    echo build/cuda
    return
  fi
  if [ -f "$BUNDLE" ] && [ "$BUNDLE" -nt build/bundle/engine_timing ]; then
    tar -C build -xJmf "$BUNDLE"
  fi
  [ -x build/bundle/engine_timing ] || die "no programs: ./dev build cuda here, or ./dev bundle elsewhere and copy $BUNDLE"
  echo build/bundle
}

# A real folder to check with: as named, or the demo's where it is.
GPU_MODEL=${BOUQUET_GPU_MODEL:-}
if [ -z "$GPU_MODEL" ] && [ -d "$MODEL" ]; then
  GPU_MODEL=$MODEL
fi

# The python3 that has torch, on a machine without our environments.
gpu_python() { "${BOUQUET_GPU_PYTHON:-python3}" "$@"; }

# `--soak [STEPS]` and `--sanitize [--quick]` are tests of their own; other arguments go to tests/gpu/parity.py.
gpu_test() {
  local programs status=0
  programs=$(gpu_programs)
  case ${1:-} in
    --soak) gpu_soak "$programs" "${@:2}"; return ;;
    --sanitize) gpu_python tests/gpu/sanitize.py --programs "$programs" "${@:2}"; return ;;
  esac
  say "" "==== every op against plain loops"
  "$programs/rose_backend_test" --gtest_filter='Gpu/*:PaddedStepTest.*' --gtest_brief=1 || status=1
  "$programs/rose_cuda_test" --gtest_brief=1 || status=1
  say "" "==== vectors against the reference library"
  gpu_python tests/gpu/parity.py --binary "$programs/engine_timing" ${GPU_MODEL:+--model "$GPU_MODEL"} "$@" || status=1
  say "" "==== bouquet serve, text to vector"
  if [ -n "$GPU_MODEL" ]; then
    gpu_python tests/gpu/serve.py --bouquet "$programs/bouquet" "$GPU_MODEL" || status=1
  else
    say "SKIPPED: no folder with weights and a tokenizer: set BOUQUET_GPU_MODEL (tools/make_f16_folder.py makes small ones)"
  fi
  say "" "==== attention kernels"
  "$programs/rose_cuda_attention_test" --gtest_brief=1 || status=1
  [ "$status" -eq 0 ] || die "gpu-test failed"
  say "gpu-test: all passed"
}

# Arguments: folder of programs, then a count of steps or none, then flags of tests/gpu/soak.py.
gpu_soak() {
  local programs=$1 steps=()
  shift
  if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    steps=(--steps "$1")
    shift
  fi
  gpu_python tests/gpu/soak.py --binary "$programs/engine_soak" "${steps[@]}" "$@"
}

# Arguments go to bench/gpu.py.
gpu_bench() {
  local programs
  programs=$(gpu_programs)
  gpu_python bench/gpu.py --binaries "$programs" "$@"
}
