#!/bin/sh
# ./build.sh [OUT.wasm]: makes a component of decider.ts. Needs node and npm.
set -eu
cd "$(dirname "$0")"
needs() { command -v "$1" >/dev/null || { echo "build.sh: $1 is missing: $2" >&2; exit 1; }; }
needs npm "install node 20 or newer with npm (apt-get install nodejs npm; where that is older, nodejs.org)"
node -e 'process.exit(Number.parseInt(process.versions.node) >= 20 ? 0 : 1)' ||
    { echo "build.sh: node $(node --version) is too old: it has to be 20 or newer (nodejs.org)" >&2; exit 1; }
[ -f node_modules/.bin/tsc ] || npm install --no-package-lock --no-audit --no-fund --loglevel error ||
    { echo "build.sh: npm could not fetch what package.json names; it needs the network this once" >&2; exit 1; }
node_modules/.bin/tsc
node build.mjs "$(realpath -m "${1:-ladder-typescript.wasm}")" build/decider.js
