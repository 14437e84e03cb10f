#!/usr/bin/env bash
# The pages of `campaign serve`, and those that commands write, in headless Chromium before `campaign sandbox`: they load under
# their policy without an error, have nothing that axe-core finds serious, move while a run is sent, and obey the rules.
#
# tests/pages/browser.sh [PROGRAM] [PICTURES]   PROGRAM is a built `campaign`; without it a debug build is made. PICTURES is a
#                                               folder for pictures of each page, wide and narrow, light and dark.
#
# Needs Chromium, npm, timeout; Node 22 or newer, which is installed beside the packages on Linux on x86-64.
# Everything else is in a temporary folder and ends with the script.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/scripts.sh"

need npm timeout
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    fail "needs Chromium: install it (Debian's package \`chromium\`), and run this again"
program_or_build "${1:-}"
PICTURES=
if [ -n "${2:-}" ]; then
    mkdir -p "$2"
    PICTURES=$(realpath "$2")
fi
in_a_folder
npm_packages "puppeteer-core@25.16.0" "axe-core@4.13.0"
# Modules look for packages beside themselves.
cp "$here"/browser/*.mjs .
PROGRAM=$program
export CHROMIUM PICTURES PROGRAM
timeout 240 node walk.mjs || fail "the pages are not as they have to be"
printf 'all pages passed (%ss)\n' "$SECONDS"
