#!/bin/sh
# ./x build | demo | test | check | …: installs the pinned toolchain if rustup is there and lacks it, then hands over to xtask.
set -eu
cd "$(dirname "$0")"
fail() { printf 'x: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }
pin=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
if command -v rustup >/dev/null; then
    # The first form reads rust-toolchain.toml; rustup before 1.28 lacks it.
    cargo fmt --version >/dev/null 2>&1 || said=$(rustup toolchain install 2>&1) ||
        said=$(rustup toolchain install "$pin" --profile minimal -c rust-src -c rustfmt -c clippy 2>&1) ||
        fail "cannot install Rust $pin: $said" "a network is needed once"
elif ! command -v cargo >/dev/null; then
    fail "there is no Rust here" "https://rustup.rs, or your distribution's cargo if it is Rust 1.99 or newer"
fi
case ${1-} in
build | demo)
    # xtask and longpole in one go, with what both need compiled once.
    cargo build --release --locked --package xtask --package collector --bins --target-dir "${CARGO_TARGET_DIR:-target}"
    exec "${CARGO_TARGET_DIR:-target}/release/xtask" "$@"
    ;;
esac
exec cargo xtask "$@"
