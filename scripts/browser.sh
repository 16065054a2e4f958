#!/usr/bin/env bash
# The tests of the dashboard drive a real browser. This installs Debian's chromium where there is none.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
root=()
if [ "$(id -u)" != 0 ]; then root=(sudo -n); fi
echo "setup: apt-get install chromium"
if command -v apt-get >/dev/null 2>&1 &&
    "${root[@]}" apt-get update -qq >/dev/null 2>&1 &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1
then exit 0; fi
echo "setup: no browser could be installed: the dashboard's tests will say how to go on without one" >&2
