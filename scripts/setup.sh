# Shared by quickstart.sh and test.sh: the one list of Debian packages, and how they are installed. Sourced, not run.

# What the program needs, what the tests add, what is used when it is there.
foreshard_packages="g++ cmake ninja-build pkg-config libsimgrid-dev libboost-dev libboost-graph-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libopenblas0-pthread libjemalloc-dev"
foreshard_test_packages="libgtest-dev xvfb openbox openmpi-bin libopenmpi-dev iproute2"
foreshard_gui_packages="qt6-base-dev qt6-svg-dev qt6-tools-dev qt6-l10n-tools fonts-dejavu-core"

# Prints the packages of the given names that are not installed.
missing_packages() {
  local name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s ' "$name"
  done
}

# apt_get ARGUMENTS...: waits up to ten minutes for another apt, such as a fresh cloud machine runs by itself. DPkg::Lock::Timeout is for
# dpkg's lock only, not for those of the package lists and archives.
apt_get() {
  local log until=$((SECONDS + ${foreshard_apt_wait:-600})) said='' as_root=''
  [ "$(id -u)" -eq 0 ] || as_root='sudo -n'
  log=$(mktemp)
  while ! $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=60 --quiet=2 "$@" </dev/null 2>"$log"; do
    if [ "$SECONDS" -ge "$until" ] || ! grep -qE 'Could not get lock|Unable to (lock|acquire)|is held by process' "$log"; then
      cat "$log" >&2
      rm -f "$log"
      return 1
    fi
    [ -n "$said" ] || echo "foreshard: another apt is at work; waiting for it"
    said=yes
    sleep 2
  done
  cat "$log" >&2
  rm -f "$log"
}

# Installs what is missing. With neither root nor sudo it prints the line to run and stops; without apt it goes on, and
# CMake says what it does not find.
install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "foreshard: no apt here; needed are: $*" | tr '\n' ' '
    echo
    return 0
  fi
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      echo "foreshard: some packages are missing and this user may not install them. Run as root:" >&2
      echo "  apt-get update && apt-get install --yes --no-install-recommends $missing" >&2
      exit 1
    fi
  fi
  echo "foreshard: installing $missing"
  apt_get update
  # shellcheck disable=SC2086  # the list is meant to be split
  apt_get install --yes --no-install-recommends $missing
}

# Where there is a CUDA compiler, the headers that attention by cuDNN is built with. Without them our own kernels do it.
fetch_cudnn_headers() {
  [ -n "$(command -v nvcc)" ] || [ -x /usr/local/cuda/bin/nvcc ] || return 0
  [ -e build/cudnn/include/cudnn_frontend.h ] || timeout 60 scripts/cudnn_headers.sh ||
    echo "foreshard: no headers of cudnn-frontend; attention on a GPU will be that of our own kernels"
}

# configure_and_build TARGET [cmake options]: Release in build/release, two jobs, at most 3 GiB of memory. Configures every time,
# which takes a second, because packages may have come since the last run.
configure_and_build() {
  local target=$1
  shift
  mkdir -p build
  fetch_cudnn_headers
  if ! cmake --preset release ${FORESHARD_PCH:+-DFORESHARD_PCH="$FORESHARD_PCH"} "$@" >build/configure.log 2>&1; then
    cat build/configure.log
    return 1
  fi
  grep -E 'SimGrid|FORESHARD_|Warning' build/configure.log || true
  cmake --build build/release --parallel 2 --target "$target"
}
