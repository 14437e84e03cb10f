#!/usr/bin/env bash
# Renders the pictures of docs/dashboard.md into this folder: docs/pictures/make.sh PROGRAM, a built `campaign`.
# The picture of the README is made by demo.py.
# Needs what tests/pages/browser.sh does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
taken=$(mktemp -d)
trap 'rm -rf "$taken"' EXIT
"$here/../../tests/pages/browser.sh" "$1" "$taken"
for name in run messages; do
    # A reader of the page waits for it.
    [ "$(stat -c %s "$taken/$name.png")" -lt 204800 ] || { echo "$name.png is larger than 200 KiB" >&2; exit 1; }
    cp "$taken/$name.png" "$here"
done
