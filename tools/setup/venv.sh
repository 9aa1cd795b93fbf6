# Python environments below build/, each from one pinned, hash-checked list tools/setup/requirements-NAME.txt.
# Sourced by ./dev. Debian's python3 makes them; nothing is installed outside build/.

# Makes build/venv-NAME unless it is there and its list has not changed since. With --each as the second argument packages
# that cannot be installed are left out and named; the next call tries again.
venv() {
  local name=$1 folder=build/venv-$1 list=tools/setup/requirements-$1.txt started=$SECONDS
  if cmp -s "$list" "$folder/requirements.txt"; then
    return
  fi
  say "setup: making the Python environment '$name' ($(grep -c '==' "$list") packages)"
  rm -rf "$folder"
  "$PYTHON" -m venv "$folder"
  if pip_install "$folder" "$list"; then
    cp "$list" "$folder/requirements.txt"
  elif [ "${2:-}" = --each ]; then
    pip_install_each "$folder" "$list"
  else
    return 1
  fi
  say "setup: environment '$name' made in $((SECONDS - started)) s"
}

# Arguments: an environment's folder, a list.
pip_install() {
  local source=()
  if [ -n "${BOUQUET_WHEEL_DIR:-}" ]; then
    source=(--no-index --find-links "$BOUQUET_WHEEL_DIR")
  fi
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --no-deps \
    "${source[@]}" -r "$2"
}

pip_install_each() {
  local folder=$1 list=$2 line
  while read -r line; do
    printf '%s\n' "$line" >"$folder/one.txt"
    pip_install "$folder" "$folder/one.txt" || say "setup: left out, since it cannot be installed: ${line%% *}"
  done < <(grep '==' "$list")
}

# Everything a machine without a network needs from the package index, except the large comparison environment.
fill_wheel_folder() {
  local folder=$1 name
  setup
  "$PYTHON" tools/setup/fetch_wheels.py --fill "$folder"
  for name in clients bench; do
    "$PYTHON" -m pip download --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --no-deps \
      -d "$folder" -r "tools/setup/requirements-$name.txt"
  done
  say "setup: $folder holds $(find "$folder" -name '*.whl' | wc -l) wheels, $(du -sh "$folder" | cut -f1)"
}
