# `./dev setup`: distribution packages from apt-packages.txt, then wheels from wheels.txt. Sourced by ./dev.
# Nothing to do costs well under a second and prints nothing, so every verb calls it first.

# Prints the packages of the list under the names of this distribution.
wanted_packages() {
  local column=1
  if grep -qs '^ID=ubuntu' /etc/os-release; then column=2; fi
  awk -v column="$column" '!/^#/ && NF { print (column == 2 && $2 != "=") ? $2 : $1 }' tools/setup/apt-packages.txt
}

missing_packages() {
  local wanted
  wanted=$(wanted_packages)
  # shellcheck disable=SC2086  # one word per package
  comm -23 <(sort -u <<<"$wanted") \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u)
}

install_packages() {
  local missing=$1 count started=$SECONDS sudo=() log=build/setup-apt.log
  count=$(wc -w <<<"$missing")
  if ! command -v apt-get >/dev/null; then
    die "these packages are missing, and there is no apt-get to install them: $(tr '\n' ' ' <<<"$missing")"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "run './dev setup' as root, or install sudo"
    sudo=(sudo)
  fi
  mkdir -p build
  say "setup: installing $count packages with apt-get (one to three minutes; log in $log):" "$(tr '\n' ' ' <<<"$missing")"
  # shellcheck disable=SC2086  # one word per package
  if ! { "${sudo[@]}" apt-get -q update &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing; } \
         >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    die "apt-get failed"
  fi
  say "setup: packages installed in $((SECONDS - started)) s"
}

setup() {
  local missing
  missing=$(missing_packages)
  if [ -n "$missing" ]; then
    install_packages "$missing"
  fi
  "$PYTHON" tools/setup/fetch_wheels.py
}
