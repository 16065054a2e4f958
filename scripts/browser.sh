#!/usr/bin/env bash
# The tests of the dashboard drive a real browser. This installs Debian's chromium where there is none.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
echo "setup: apt-get install chromium"
if "$(dirname "$0")/apt.sh" chromium fonts-dejavu-core >/dev/null 2>&1; then exit 0; fi
echo "setup: no browser could be installed: the dashboard's tests will say how to go on without one" >&2
