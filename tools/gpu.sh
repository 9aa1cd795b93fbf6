# What runs on a machine with a GPU, which need not have a network, our distribution's packages or a compiler. Sourced by ./dev.
#
# `bundle` packs programs and the libraries they need; `gpu_test` and `gpu_bench` take them from build/cuda, or else from the
# bundle. CUDA's own libraries are not packed: they come from the machine's toolkit or PyTorch.

BUNDLE=build/bouquet-gpu.tar.xz
BUNDLE_LIMIT_MIB=22
GPU_PROGRAMS=(bouquet engine_timing rose_backend_test rose_cuda_attention_test ragged_attention_bench)

# Shared libraries of a program but those that every Linux has.
libraries_of() {
  ldd "$@" | awk '/=> \// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' | sort -u
}

bundle() {
  local program library bytes
  build cuda "${GPU_PROGRAMS[@]}"
  rm -rf build/bundle
  mkdir -p build/bundle/lib
  for program in "${GPU_PROGRAMS[@]}"; do
    cp "build/cuda/$program" build/bundle/
  done
  for library in $(libraries_of build/bundle/*[!b]); do
    cp -L "$library" build/bundle/lib/
  done
  strip build/bundle/lib/*.so* "${GPU_PROGRAMS[@]/#/build/bundle/}"
  tar -C build -cf - bundle | xz -T"$JOBS" -6 >"$BUNDLE"
  bytes=$(stat -c %s "$BUNDLE")
  say "bundle: $BUNDLE, $((bytes / 1024 / 1024)) MiB"
  [ "$bytes" -le $((BUNDLE_LIMIT_MIB * 1024 * 1024)) ] || die "the bundle is larger than $BUNDLE_LIMIT_MIB MiB"
}

# Prints the folder with the programs.
gpu_programs() {
  if [ -x build/cuda/engine_timing ] && command -v nvcc >/dev/null; then
    echo build/cuda
    return
  fi
  if [ -f "$BUNDLE" ] && [ "$BUNDLE" -nt build/bundle/engine_timing ]; then
    tar -C build -xJmf "$BUNDLE"
  fi
  [ -x build/bundle/engine_timing ] || die "no programs: ./dev build cuda here, or ./dev bundle elsewhere and copy $BUNDLE"
  echo build/bundle
}

# The python3 that has torch, on a machine without our environments.
gpu_python() { "${BOUQUET_GPU_PYTHON:-python3}" "$@"; }

# Arguments go to tests/gpu/parity.py.
gpu_test() {
  local programs status=0
  programs=$(gpu_programs)
  say "" "==== every op against plain loops"
  "$programs/rose_backend_test" --gtest_filter='Gpu/*' --gtest_brief=1 || status=1
  say "" "==== attention kernels"
  "$programs/rose_cuda_attention_test" --gtest_brief=1 || status=1
  say "" "==== vectors against the reference library"
  gpu_python tests/gpu/parity.py --binary "$programs/engine_timing" "$@" || status=1
  [ "$status" -eq 0 ] || die "gpu-test failed"
  say "gpu-test: all passed"
}
