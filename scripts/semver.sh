#!/bin/sh
# Compares what other programs can use with an earlier commit, by the rules of semantic versioning: cargo-semver-checks, on the
# rustdoc JSON of both.
#
#   scripts/semver.sh [REVISION]     HEAD~1 when none is named
#
# Only the three packages that others use are documented, each commit in a folder of its own below target/semver; their
# dependencies are checked once, in the target folder that all else uses.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
base=$(git rev-parse --verify "${1:-HEAD~1}^{commit}")
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
export CARGO_TARGET_DIR
pages=$CARGO_TARGET_DIR/semver
source=$pages/source

command -v cargo-semver-checks >/dev/null 2>&1 || {
    echo "semver: cargo-semver-checks is missing: cargo install --locked cargo-semver-checks" >&2
    exit 1
}

# describe FOLDER NAME: the JSON of the sources there; what cargo finds fresh is there from before. The flag without a meaning
# sets these pages apart from others.
describe() {
    mkdir -p "$pages/$2"
    (cd "$1" && SEMVER_PAGES=$pages/$2 RUSTDOC=$here/scripts/semver-rustdoc.sh RUSTDOCFLAGS="--cfg semver_$2" \
        cargo doc --release --locked --workspace --no-deps --quiet)
}

describe "$here" now
git worktree remove --force "$source" 2>/dev/null || rm -rf "$source"
git worktree prune
git worktree add --quiet --detach "$source" "$base"
trap 'git worktree remove --force "$source"' EXIT
describe "$source" then

for package in homeostat engine store; do
    cargo semver-checks --current-rustdoc "$pages/now/$package.json" --baseline-rustdoc "$pages/then/$package.json"
done
