#!/bin/sh
# Installs the pinned Codex app-server outside of this folder; a second run returns at once.
set -eu

version=$(sed -n 's/^VERSION: Final = "\(.*\)"$/\1/p' "$(dirname "$0")/codex_binary.py")
folder="${XDG_CACHE_HOME:-$HOME/.cache}/watchfloor/peers/codex-$version"
[ -e "$folder/node_modules/@openai/codex/package.json" ] && exit 0

if ! command -v npm >/dev/null; then
    echo 'npm is needed to install the Codex app-server: install Node.js' >&2
    exit 1
fi
mkdir -p "$(dirname "$folder")"
# Put in its place when it is whole, so that a half of it is never taken for an installation.
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new"' EXIT
npm install --prefix "$new" --no-audit --no-fund --ignore-scripts --loglevel=error "@openai/codex@$version" >/dev/null
rm -rf "$folder"
mv "$new" "$folder"
echo "the Codex app-server $version is in $folder"
