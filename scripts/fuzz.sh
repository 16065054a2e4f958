#!/bin/sh
# Coverage-guided fuzzing, with bolero and LLVM's libFuzzer, on the compiler that builds the rest.
#
#   scripts/fuzz.sh run SECONDS [TARGET...]   makes cases: components, snapshots, plans
#   scripts/fuzz.sh keep TARGET [BYTES]       of what a run has found, adds to tests/corpus what covers more than the corpus
#                                             does, the shortest first, cases of at most so many bytes
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here/fuzz"
output=${CARGO_TARGET_DIR:-$here/target}/fuzz
version=0.13.5

command -v cargo-bolero >/dev/null 2>&1 || {
    echo "fuzz: cargo-bolero is missing: cargo install --locked cargo-bolero --version $version" \
        "--no-default-features --features libfuzzer" >&2
    exit 1
}

# Plans need no sandbox, and so no minutes of compiling.
package() { [ "$1" = plans ] && echo fuzz-engine || echo fuzz-sandbox; }
folder() { [ "$1" = plans ] && echo engine/plans || echo "sandbox/$1"; }

# bolero TARGET ARGUMENT...: the options of libFuzzer come last.
bolero() {
    target=$1
    shift
    RUSTC_WRAPPER="$here/fuzz/rustc.sh" cargo bolero test "$target" --package "$(package "$target")" --engine libfuzzer --sanitizer NONE \
        --target-dir "$output" --timeout 20s "$@"
}

verb=${1:-}
shift || true
case $verb in
run)
    seconds=$1
    shift
    for target in ${*:-plans snapshots components}; do
        echo "fuzz: $target, $seconds seconds"
        bolero "$target" -T "${seconds}s" -E=-print_final_stats=1 -E=-verbosity=1
    done
    ;;
keep)
    target=$1
    most=${2:-200}
    committed=$(mktemp -d)
    trap 'rm -rf "$committed"' EXIT
    # As the run has laid it out: the committed cases, and those to start from.
    for file in "$here/tests/corpus/$target"/*.hex; do
        cp "$(folder "$target")/corpus/$(basename "$file" .hex)" "$committed"
    done
    cp "$(folder "$target")/corpus"/seed-* "$committed"
    ls "$committed" >"$committed.before"
    bolero "$target" --corpus-dir "$committed" --crashes-dir "$here/fuzz/$(folder "$target")/corpus" -E=-merge=1
    for case in "$committed"/*; do
        name=$(basename "$case")
        if ! grep -qx "$name" "$committed.before" && [ "$(wc -c <"$case")" -le "$most" ]; then
            od -An -v -tx1 -w50 "$case" | tr -d ' ' >"$here/tests/corpus/$target/covers-$(echo "$name" | cut -c1-16).hex"
        fi
    done
    rm -f "$committed.before"
    ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' "$here/scripts/fuzz.sh" >&2
    exit 2
    ;;
esac
