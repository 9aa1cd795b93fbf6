# `./dev setup --llama-server`: makes build/llama.cpp/llama-server, a peer of ./dev bench http-peers. Sourced by ./dev.

# A source package of the index that carries all of llama.cpp.
LLAMA_SOURCE='llama-cpp-python==0.3.36 --hash=sha256:832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e'

# For this machine's processor, without what needs a GPU or a network. Several minutes on two cores.
build_llama_server() {
  local folder=build/llama.cpp log=build/llama.cpp.log started=$SECONDS source=() version
  if [ -x "$folder/llama-server" ] && cmp -s "$folder/source.txt" <<<"$LLAMA_SOURCE"; then
    return
  fi
  venv llama  # pip asks a source package's build system what it is
  rm -rf "$folder"
  mkdir -p "$folder"
  printf '%s\n' "$LLAMA_SOURCE" >"$folder/source.txt"
  if [ -n "${BOUQUET_WHEEL_DIR:-}" ]; then
    source=(--no-index --find-links "$BOUQUET_WHEEL_DIR")
  fi
  build/venv-llama/bin/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
    --no-build-isolation --no-binary=:all: "${source[@]}" -d "$folder" -r "$folder/source.txt"
  say "setup: building llama-server (several minutes; log in $log)"
  tar -xzf "$folder"/*.tar.gz -C "$folder" --strip-components=3 --wildcards '*/vendor/llama.cpp/*'
  rm "$folder"/*.tar.gz
  version=${LLAMA_SOURCE%% *}
  if ! { cmake -S "$folder" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
           -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF \
           -DLLAMA_BUILD_COMMIT="${version/==/-}" &&
         cmake --build "$folder/build" -j "$JOBS" --target llama-server; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "llama-server could not be built"
  fi
  mv "$folder/build/bin/llama-server" "$folder/llama-server"
  find "$folder" -mindepth 1 -maxdepth 1 ! -name llama-server ! -name source.txt ! -name LICENSE -exec rm -rf {} +
  say "setup: llama-server built in $((SECONDS - started)) s"
}
