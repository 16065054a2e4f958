#!/bin/sh
# Cargo's way to rustc (RUSTC_WRAPPER) for a coverage-guided build: only the packages that read what the fuzzer makes are watched.
# The others, the code generator above all, would cost much and show little.
name=
previous=
for argument in "$@"; do
    [ "$previous" = --crate-name ] && name=$argument
    previous=$argument
done
case $name in
cases | decider | engine | homeostat | tests | wasmparser | wasmtime | wasmtime_environ) exec "$@" ;;
esac
for argument in "$@"; do
    shift
    case $argument in
    -Cpasses=sancov-module | -Cllvm-args=-sanitizer-coverage-*) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "$@"
