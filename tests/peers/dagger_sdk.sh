#!/bin/sh
# Installs the two versions of Dagger's official SDK that the live tests hold the connector against, each in an
# environment of its own below the user's cache folder. What is there already stays. Wants a Python of 3.10 or newer
# as its first argument.
set -eu

python=${1:?usage: dagger_sdk.sh PYTHON}
peers="${XDG_CACHE_HOME:-$HOME/.cache}/watchfloor/peers"

for version in 1.0.0b14 1.0.0b21; do
    place="$peers/dagger-io-$version"
    if "$place/bin/python" -c 'import dagger' 2>/dev/null; then
        continue
    fi
    rm -rf "$place"
    mkdir -p "$peers"
    "$python" -m venv "$place"
    if ! "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "dagger-io==$version"; then
        # Half an environment would look like a whole one to the tests.
        rm -rf "$place"
        echo "watchfloor: dagger-io $version could not be installed; its tests will be skipped" >&2
        exit 1
    fi
    echo "watchfloor: dagger-io $version is ready in $place" >&2
done
