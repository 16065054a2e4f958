#!/bin/sh
# ./build.sh [OUT.wasm]: compiles the decider with clang, and makes a component of it with homeostat (or $HOMEOSTAT).
# Needs clang and lld (Debian: apt-get install clang lld); no C library, no WASI.
set -eu
cd "$(dirname "$0")"
out=${1:-ladder-c.wasm}
needs() { command -v "$1" >/dev/null || { echo "build.sh: $1 is missing: $2" >&2; exit 1; }; }
needs "${CC:-clang}" "apt-get install clang lld, or your system's equivalent"
needs "$("${CC:-clang}" --print-prog-name=wasm-ld)" "clang links with it; apt-get install lld, or your system's equivalent"
needs "${HOMEOSTAT:-homeostat}" "put the program homeostat on the path, or its place into HOMEOSTAT"
module=$(mktemp)
trap 'rm -f "$module"' EXIT

"${CC:-clang}" --target=wasm32 -std=c11 -O3 -flto -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-braces \
    -ffreestanding -fno-builtin -nostdlib -mbulk-memory -I include \
    decider.c homeostat.c runtime.c bindings/decider.c \
    -Wl,--no-entry -Wl,--strip-all -Wl,--stack-first -Wl,-z,stack-size=32768 -o "$module"
"${HOMEOSTAT:-homeostat}" decider componentize "$module" --out "$out"
