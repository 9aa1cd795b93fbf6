# `./dev test`: all of CI. Sourced by ./dev.
#
# Items run one after another; a failed one does not stop the others, except that nothing follows a release build that
# fails. At the end: minutes per item, then the summary of one ctest run as ctest printed it (that of a failed run, where
# there is one, else the release build's).

declare -a ITEM_NAMES ITEM_SECONDS ITEM_RESULTS
FAILED_CTEST_LOG=""

# Runs the rest of the arguments as the item named by the first; `passed` then says how that went. To be called as a plain
# command: in an `if`, or before `&&` or `||`, bash ignores failures in the middle of a function, whatever it sets itself.
item() {
  local name=$1 started=$SECONDS result=ok
  shift
  say "" "==== $name"
  set +e
  (set -e; "$@")
  [ $? -eq 0 ] || result=FAILED
  set -e
  ITEM_NAMES+=("$name")
  ITEM_SECONDS+=($((SECONDS - started)))
  ITEM_RESULTS+=("$result")
}

# Whether the item that ran last did.
passed() { [ "${ITEM_RESULTS[-1]}" = ok ]; }

# Arguments: preset, then what ctest takes. Tests run in parallel; each prints its output only when it fails.
run_ctest() {
  local preset=$1 log=build/ctest-$1.log status=0
  shift
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$JOBS" "$@" 2>&1 | tee "$log" || status=$?
  return "$status"
}

ctest_item() {
  local name=$1 preset=$2
  shift 2
  item "$name" run_ctest "$preset" "$@"
  passed || FAILED_CTEST_LOG=build/ctest-$preset.log
}

print_items() {
  local i
  say "" "==== minutes per item ($JOBS cores)"
  for i in "${!ITEM_NAMES[@]}"; do
    awk -v name="${ITEM_NAMES[i]}" -v seconds="${ITEM_SECONDS[i]}" -v result="${ITEM_RESULTS[i]}" \
      'BEGIN { printf "%-50s %6.1f  %s\n", name, seconds / 60, result }'
  done
  awk -v seconds="$SECONDS" 'BEGIN { printf "%-50s %6.1f\n", "total", seconds / 60 }'
}

# The last lines of the run: ctest's own summary.
print_summary() {
  local log=${FAILED_CTEST_LOG:-build/ctest-release.log}
  say "" "==== $log"
  sed -n '/^[0-9]*% tests passed/,$p' "$log"
}

has_failures() { [[ " ${ITEM_RESULTS[*]} " == *" FAILED "* ]]; }

# As cmake/cuda.cmake looks for it.
has_nvcc() { PATH=${CUDA_HOME:+$CUDA_HOME/bin:}/usr/local/cuda/bin:$PATH command -v nvcc >/dev/null; }

# Compiles what runs on a GPU; running it is `./dev gpu-test`. FA3's files take minutes each, so only --full has them.
cuda_build() {
  if ! has_nvcc; then
    say "SKIPPED: no nvcc in CUDA_HOME, /usr/local/cuda or PATH, so the CUDA backend was neither compiled nor linted"
    return
  fi
  FA3=$1 build cuda bouquet rose_backend_test rose_cuda_attention_test engine_timing
  FA3=$1 build cuda header_checks
  [ "$1" = ON ] || say "build/cuda is without FA3 now: ./dev build cuda or ./dev bundle before gpu-test and gpu-bench"
}

has_test_data() { [ -d "${BOUQUET_DATA:-../shared/data}" ]; }

# A random seed each time, which the script prints.
generated_strings() {
  if ! has_test_data && [ "${BOUQUET_DATA_REQUIRED:-0}" != 1 ]; then
    say "SKIPPED: no test data in BOUQUET_DATA or ../shared/data, so tokenizers were not compared on generated strings"
    return
  fi
  parity_tokenizers --seconds 60
}

run_all_tests() {
  local full=no
  case ${1:-} in
    "") ;;
    --full) full=yes ;;
    *) die "usage: ./dev test [--full]" ;;
  esac
  if [ "${CI:-}" = true ]; then
    export BOUQUET_DATA_REQUIRED=1
  fi
  # This run makes the environment of the client tests, so they must not skip.
  export BOUQUET_CLIENTS_REQUIRED=1

  item "environment of the client tests" venv clients
  item "release build" build release
  if ! passed; then
    print_items
    exit 1
  fi
  item "headers compile alone" build release header_checks
  ctest_item "release tests" release
  item "generated strings against the reference library$(has_test_data || echo ', no test data')" generated_strings
  # Before the lint, which takes the CUDA backend's commands from it.
  item "CUDA build$(has_nvcc || echo ', SKIPPED: no nvcc')" cuda_build "$([ "$full" = yes ] && echo ON || echo OFF)"
  item "format" fmt --check
  if [ "$full" = yes ]; then
    item "lint" lint
  else
    item "lint of the product" lint --product
  fi
  item "ASan + UBSan build" build dev
  if passed; then
    ctest_item "ASan + UBSan tests" dev
  fi
  if [ "$full" = yes ]; then
    item "TSan build, everything" build tsan
    if passed; then
      ctest_item "TSan tests, everything" tsan
    fi
    item "fuzzing" fuzz 120
    item "vectors against the reference" parity
  else
    item "TSan build of the threaded tests" build tsan threaded_tests
    if passed; then
      ctest_item "TSan tests" tsan -L threads
    fi
  fi
  print_items
  print_summary
  ! has_failures
}
