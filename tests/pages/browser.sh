#!/usr/bin/env bash
# Dashboard pages and generated pages in headless Chromium, with `campaign sandbox` as the gateway. They must load without
# errors under their content security policy, pass axe-core, update while a run is sent, and refuse forged forms.
#
# tests/pages/browser.sh [PROGRAM] [PICTURES]   PROGRAM is a built `campaign`; the default is a new debug build. PICTURES
#                                               is a folder for screenshots: wide, narrow, light and dark.
#
# Needs Chromium, npm, timeout; Node 22 or newer (installed with the packages on Linux x86-64).
# All other files are in a temporary folder that is removed at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/scripts.sh"

need npm timeout
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    fail "needs Chromium: install it (Debian package \`chromium\`) and run this script again"
program_or_build "${1:-}"
PICTURES=
if [ -n "${2:-}" ]; then
    mkdir -p "$2"
    PICTURES=$(realpath "$2")
fi
in_a_folder
npm_packages "puppeteer-core@25.16.0" "axe-core@4.13.0"
# Node resolves packages from the folder of the importing module.
cp "$here"/browser/*.mjs .
PROGRAM=$program
export CHROMIUM PICTURES PROGRAM
timeout 480 node walk.mjs || fail "some checks of the pages failed"
printf 'all pages passed (%ss)\n' "$SECONDS"
