#!/bin/sh
# ./build.sh [OUT.wasm]: compiles the decider with AssemblyScript, and makes a component of it with homeostat (or $HOMEOSTAT).
# Needs npm. Nothing is imported: an abort traps, and the runtime only allocates.
set -eu
cd "$(dirname "$0")"
out=${1:-ladder-assemblyscript.wasm}
module=$(mktemp)
trap 'rm -f "$module"' EXIT

[ -d node_modules ] || npm install --no-package-lock --no-audit --no-fund --silent
npx --no-install asc decider.ts -O3 --noAssert --runtime stub --use abort= --disable simd --outFile "$module"
"${HOMEOSTAT:-homeostat}" decider componentize "$module" --out "$out"
