#!/bin/sh
# Builds a bamboo server outside of this folder, which takes about half an hour; a second run returns at once.
# Another version than the usual one can be named.
set -eu

version="${1:-2026.9.20}"
folder="${XDG_CACHE_HOME:-$HOME/.cache}/watchfloor-peers/bamboo-$version"
[ -x "$folder/bin/bamboo" ] && exit 0

if ! command -v cargo >/dev/null; then
    echo 'cargo is needed to build bamboo: install Rust 1.95 or newer' >&2
    exit 1
fi
# Put in its place when it is whole, so that a half of it is never taken for an installation.
mkdir -p "$(dirname "$folder")"
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new"' EXIT
BAMBOO_FRONTEND_BUILD_MODE=api-only CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_BUILD_JOBS="${CARGO_BUILD_JOBS:-2}" \
    cargo install bamboo-agent --version "$version" --locked --root "$new"
rm -rf "$folder"
mv "$new" "$folder"
echo "bamboo $version is in $folder"
