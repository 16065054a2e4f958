#!/bin/sh
# ./build.sh [OUT.wasm]: makes a component of decider.js. Needs node and npm.
set -eu
cd "$(dirname "$0")"
[ -d node_modules ] || npm install --no-package-lock --no-audit --no-fund --silent
node build.mjs "$(realpath -m "${1:-ladder-javascript.wasm}")"
