#!/bin/sh
# Installs Debian packages where they are missing. A lock that somebody else holds, and a mirror that stumbles, are waited for.
#
#   scripts/apt.sh PACKAGE...
set -eu

command -v apt-get >/dev/null 2>&1 || exit 1
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
missing=no
for package; do installed "$package" || missing=yes; done
[ $missing = yes ] || exit 0

# Directly, or through sudo (without a question when there is nobody to answer it).
if [ "$(id -u)" = 0 ]; then as_root=; elif [ -t 0 ]; then as_root=sudo; else as_root="sudo -n"; fi
$as_root true || exit 1
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }

for pause in 5 10 20 40 0; do
    if apt update; then
        # What the mirror has not is not there a minute later either.
        apt-cache show "$@" >/dev/null 2>&1 || break
        if apt install -y --no-install-recommends "$@"; then exit 0; fi
    fi
    [ $pause = 0 ] || echo "apt-get failed; it is tried again in $pause s" >&2
    sleep $pause
done
exit 1
