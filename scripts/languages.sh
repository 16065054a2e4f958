#!/usr/bin/env bash
# The tests of deciders in other languages run the compilers that their authors would: clang and lld for C, node and npm
# for JavaScript, TypeScript and AssemblyScript. This installs Debian's where there are none.
set -euo pipefail

wanted=()
command -v clang >/dev/null 2>&1 || wanted+=(clang)
command -v wasm-ld >/dev/null 2>&1 || wanted+=(lld)
command -v node >/dev/null 2>&1 || wanted+=(nodejs)
command -v npm >/dev/null 2>&1 || wanted+=(npm)
if [ ${#wanted[@]} = 0 ]; then exit 0; fi
echo "setup: apt-get install ${wanted[*]}"
if "$(dirname "$0")/apt.sh" "${wanted[@]}" >/dev/null 2>&1; then exit 0; fi
echo "setup: ${wanted[*]} could not be installed: the tests of other languages will say how to go on without" >&2
