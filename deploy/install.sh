#!/bin/sh
# Installs fencepost and fencepost-server from a release, after it has checked the archive:
#
#   curl -fsSL https://raw.githubusercontent.com/fencepost/fencepost/main/deploy/install.sh | sh
#
# PREFIX              where to: programs into bin, manual pages into share/man (~/.local)
# FENCEPOST_RELEASES  the folder of the release, with checksums.txt (that of the newest release)
#
# Needs tar and gzip, curl or wget, and sha256sum or shasum.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

fetch() { # fetch URL FILE
  if command -v curl >/dev/null; then curl -fsSL --retry 3 -o "$2" "$1"; else wget -qO "$2" "$1"; fi ||
    fail "cannot download $1"
}

sum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

main() { # a download that breaks off runs nothing
  from=${FENCEPOST_RELEASES:-https://github.com/fencepost/fencepost/releases/latest/download}
  prefix=${PREFIX:-$HOME/.local}
  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no archive for $(uname -s) here: see $from" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) machine=amd64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) fail "there is no archive for $(uname -m)" ;;
  esac
  name=fencepost_${system}_$machine
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT

  fetch "$from/checksums.txt" "$work/checksums.txt"
  wanted=$(awk -v file="$name.tar.gz" '$2 == file { print $1 }' "$work/checksums.txt")
  [ -n "$wanted" ] || fail "checksums.txt does not list $name.tar.gz"
  fetch "$from/$name.tar.gz" "$work/$name.tar.gz"
  [ "$(sum "$work/$name.tar.gz")" = "$wanted" ] || fail "the checksum of $name.tar.gz is wrong"
  tar -xzf "$work/$name.tar.gz" -C "$work"

  mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/man/man8"
  for program in fencepost fencepost-server; do # a running program keeps its file
    cp "$work/$name/$program" "$prefix/bin/.$program.new"
    mv -f "$prefix/bin/.$program.new" "$prefix/bin/$program"
  done
  cp "$work/$name"/man/*.1.gz "$prefix/share/man/man1"
  cp "$work/$name"/man/*.8.gz "$prefix/share/man/man8"
  "$prefix/bin/fencepost" version
  case :$PATH: in *:"$prefix/bin":*) ;; *) echo "Add $prefix/bin to PATH." ;; esac
}

main
