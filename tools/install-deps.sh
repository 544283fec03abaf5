#!/usr/bin/env bash
# Installs the Debian packages that building, testing and the demo need; does nothing when all are there.
set -euo pipefail

packages=(
  build-essential ccache cmake git ninja-build pkg-config
  libboost1.81-dev libboost-json1.81-dev libcli11-dev libfmt-dev liblz4-dev
  libspdlog-dev libssl-dev libxxhash-dev libyaml-cpp-dev
  libbenchmark-dev doctest-dev
  openssl python3
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $state == ii* ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || {
    echo "error: packages are missing: ${missing[*]}: not root and no sudo. Try: run $0 as root" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
