#!/bin/sh
# Builds the pinned aion server outside of this folder; a second run returns at once. It takes about half an hour.
set -eu

version=$(sed -n 's/^VERSION: Final = "\(.*\)"$/\1/p' "$(dirname "$0")/../fixtures/aion/peer.py")
folder="$HOME/.cache/watchfloor-peers/aion"
if [ -x "$folder/bin/aion" ] && "$folder/bin/aion" --version | grep -qF "$version"; then
    exit 0
fi
if ! command -v cargo >/dev/null; then
    echo 'cargo is needed to build the aion server: install Rust 1.85 or newer' >&2
    exit 1
fi
# Its release profile optimises for hours of running; a test wants it built within the hour.
CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_BUILD_JOBS="${CARGO_BUILD_JOBS:-2}" cargo install aion-cli --version "$version" --locked --root "$folder"
echo "the aion server $version is in $folder"
