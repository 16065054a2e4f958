#!/bin/sh
# rustdoc for scripts/semver.sh: what is public in the packages that other programs use, as JSON, in the folder that is named by
# SEMVER_PAGES. Nothing for the other packages.
case " $* " in
*" --crate-name homeostat "* | *" --crate-name engine "* | *" --crate-name store "*) ;;
*" --crate-name "*) exit 0 ;;
*) exec rustdoc "$@" ;;
esac
previous=
for argument in "$@"; do
    shift
    [ "$previous" = -o ] && argument=$SEMVER_PAGES
    previous=$argument
    set -- "$@" "$argument"
done
RUSTC_BOOTSTRAP=1 exec rustdoc "$@" -Z unstable-options --output-format json
