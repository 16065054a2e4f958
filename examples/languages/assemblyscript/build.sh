#!/bin/sh
# ./build.sh [OUT.wasm]: compiles the decider with AssemblyScript, and makes a component of it with homeostat (or $HOMEOSTAT).
# Needs npm. Nothing is imported: an abort traps, and the runtime only allocates.
set -eu
cd "$(dirname "$0")"
out=${1:-ladder-assemblyscript.wasm}
needs() { command -v "$1" >/dev/null || { echo "build.sh: $1 is missing: $2" >&2; exit 1; }; }
needs npm "install node 20 or newer with npm (apt-get install nodejs npm; where that is older, nodejs.org)"
node -e 'process.exit(Number.parseInt(process.versions.node) >= 20 ? 0 : 1)' ||
    { echo "build.sh: node $(node --version) is too old: it has to be 20 or newer (nodejs.org)" >&2; exit 1; }
needs "${HOMEOSTAT:-homeostat}" "put the program homeostat on the path, or its place into HOMEOSTAT"
module=$(mktemp)
trap 'rm -f "$module"' EXIT

[ -d node_modules/assemblyscript ] || npm install --no-package-lock --no-audit --no-fund --loglevel error ||
    { echo "build.sh: npm could not fetch what package.json names; it needs the network this once" >&2; exit 1; }
npx --no-install asc decider.ts -O3 --noAssert --runtime stub --use abort= --disable simd --outFile "$module"
"${HOMEOSTAT:-homeostat}" decider componentize "$module" --out "$out"
