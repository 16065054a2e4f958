#!/bin/sh
# Sets up what a build needs and a fresh machine may lack: a C linker, and a way to compile the guests for
# wasm32-unknown-unknown. Does nothing when both are there. The build script (decider-wasm/build) only detects.
#
#   scripts/setup.sh [auto|rustup|debian]
#
# auto takes what is installed already; else tries rustup, then Debian's packages; else says what would make it work.
set -eu

way=${1:-auto}
target=wasm32-unknown-unknown
rustup_limit=${RUSTUP_LIMIT:-60} # seconds
cd "$(dirname "$0")/.."

say() { echo "setup: $*"; }
fail() {
    echo "setup: $*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

apt_install() { scripts/apt.sh "$@" >/dev/null; }

# The Rust version that the workspace asks for, as one number: 1.95 is 1095.
wanted_version() { sed -n 's/^rust-version *= *"\([0-9]*\)\.\([0-9]*\).*/\1 \2/p' Cargo.toml | number; }
number() { awk '{ print $1 * 1000 + $2; exit }'; }
version_of() { "$1" --version 2>/dev/null | sed -n 's/^rustc \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | number; }

has_target() {
    folder=$("${RUSTC:-rustc}" --print target-libdir --target "$target" 2>/dev/null) || return 1
    ls "$folder"/libcore-* >/dev/null 2>&1
}

distribution=/usr/bin/rustc
has_distribution() {
    [ -x "$distribution" ] || return 1
    version=$(version_of "$distribution")
    [ "${version:-0}" -ge "$(wanted_version)" ] || return 1
    [ -f "$("$distribution" --print sysroot)/lib/rustlib/src/rust/library/alloc/Cargo.toml" ]
}

# The distribution's compiler brings no linker for the target; a toolchain of rustup's does.
has_linker() {
    have wasm-ld || have rust-lld && return
    for compiler in "${RUSTC:-rustc}" "$distribution"; do
        sysroot=$("$compiler" --print sysroot 2>/dev/null) || continue
        host=$("$compiler" -vV | sed -n 's/^host: //p')
        [ -x "$sysroot/lib/rustlib/$host/bin/rust-lld" ] && return
    done
    return 1
}

by_rustup() {
    have rustup || return 1
    say "rustup target add $target (at most $rustup_limit s)"
    timeout "$rustup_limit" rustup target add "$target" >/dev/null 2>&1 && has_target
}

by_debian() {
    have apt-get || return 1
    say "apt-get install rustc-web rust-web-src"
    apt_install rustc-web rust-web-src && has_distribution
}

with_linker() {
    has_linker && return
    say "apt-get install lld"
    apt_install lld && has_linker || fail "no rust-lld and no wasm-ld: as root, apt-get install lld"
}

# cargo and rustc.
have cargo || fail "cargo is not installed: rustup installs it, see the Rust project's page"
active=$(version_of "${RUSTC:-rustc}")
[ "${active:-0}" -ge "$(wanted_version)" ] ||
    fail "$("${RUSTC:-rustc}" --version) is too old: Cargo.toml asks for $(sed -n 's/^rust-version *= *//p' Cargo.toml)"

# A C linker.
if ! have cc && ! have gcc && ! have clang; then
    say "apt-get install gcc libc6-dev"
    apt_install gcc libc6-dev && have cc ||
        fail "no C compiler (cc): rustc links with it. As root: apt-get install gcc libc6-dev, or your system's equivalent"
fi

# A way to compile the guests.
case $way in
auto)
    has_target || { has_distribution && with_linker; } || by_rustup || { by_debian && with_linker; } || fail "no way to compile for $target; one of these makes it work:
  rustup target add $target
  apt-get install rustc-web rust-web-src    (as root or with sudo; Debian 12 and newer)"
    ;;
rustup)
    have rustup || has_target || fail "GUEST=rustup: rustup is not installed, and the toolchain lacks $target"
    has_target || by_rustup || fail "GUEST=rustup: rustup target add $target did not work within $rustup_limit s"
    ;;
debian)
    has_distribution || by_debian ||
        fail "GUEST=debian: apt-get install rustc-web rust-web-src did not work; it needs Debian 12 or newer, and root or sudo"
    with_linker
    ;;
*) fail "GUEST=$way: use auto, rustup or debian" ;;
esac
