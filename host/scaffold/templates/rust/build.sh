#!/bin/sh
# ./build.sh [OUT.wasm]: compiles the decider for wasm32-unknown-unknown, and makes a component of it with homeostat (or $HOMEOSTAT).
set -eu
cd "$(dirname "$0")"
target=wasm32-unknown-unknown
out=${1:-ladder-rust.wasm}
needs() { command -v "$1" >/dev/null || { echo "build.sh: $1 is missing: $2" >&2; exit 1; }; }
needs cargo "rustup.rs installs it"
needs "${HOMEOSTAT:-homeostat}" "put the program homeostat on the path, or its place into HOMEOSTAT"
# A small stack makes a fresh instance cheaper.
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C link-arg=-zstack-size=32768"

# The linker of a toolchain of rustup's, or one in the search path.
linker() {
    for compiler in rustc /usr/bin/rustc; do
        file="$("$compiler" --print sysroot 2>/dev/null)/lib/rustlib/$("$compiler" -vV 2>/dev/null | sed -n 's/^host: //p')/bin/rust-lld"
        if [ -x "$file" ]; then echo "$file"; return; fi
    done
    command -v rust-lld || command -v wasm-ld
}

if ls "$(rustc --print target-libdir --target "$target" 2>/dev/null)"/libcore-* >/dev/null 2>&1; then
    cargo build --release --quiet --lib --target "$target" --target-dir target
elif [ -f "$(/usr/bin/rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/alloc/Cargo.toml" ] && lld=$(linker); then
    # Debian's compiler, with the standard library from its source; building that is not stable yet.
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$lld \
        cargo build --release --quiet --lib --target "$target" --target-dir target -Z build-std=core,alloc
else
    echo "nothing here compiles for $target; one of these makes it work:" >&2
    echo "  rustup target add $target" >&2
    echo "  apt-get install rustc-web rust-web-src lld    (Debian 12 and newer)" >&2
    exit 1
fi
"${HOMEOSTAT:-homeostat}" decider componentize "target/$target/release/$(echo ladder-rust | tr - _).wasm" --out "$out"
