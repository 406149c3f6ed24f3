#!/bin/sh
# Installs the pinned Hermes agent outside of this folder, in an environment of its own; a second run returns at once.
#
#   hermes_install.sh PYTHON
set -eu

version=0.19.0
folder="${XDG_CACHE_HOME:-$HOME/.cache}/watchfloor/peers/hermes-$version"
[ -x "$folder/bin/hermes" ] && [ -e "$folder/.whole" ] && exit 0

# Scripts of an environment hold its path: it is made in its place, and marked when it is whole.
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
"$1" -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "hermes-agent[acp]==$version"
touch "$folder/.whole"
echo "the Hermes agent $version is in $folder"
