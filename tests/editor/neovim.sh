#!/usr/bin/env bash
# The language server in headless Neovim: a campaign is typed from an empty file, with findings, completions,
# explanations and definitions.
#
# tests/editor/neovim.sh [PROGRAM]   PROGRAM is a built `campaign`; the default is a new debug build.
#
# Needs Neovim 0.7 or newer; without it, the script says so and ends with 0.
# All files are in a temporary folder that is removed at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/scripts.sh"

if ! command -v nvim >/dev/null; then
    echo "not tested: the language server in Neovim, which is not installed"
    exit 0
fi
need timeout
program_or_build "${1:-}"
in_a_folder
printf 'phone,first_name,plan\n+380500000001,Olena,gold\n+380500000002,Ivan,basic\n' >list.csv
export PROGRAM=$program HOME=$folder XDG_CONFIG_HOME=$folder/config XDG_STATE_HOME=$folder/xdg CAMPAIGN_STATE_DIR=$folder/state
timeout 120 nvim --clean --headless -c "luafile $here/neovim.lua" 2>&1 || fail "some checks in Neovim failed"
[ ! -e "$folder/state" ] || fail "the language server created a state folder"
printf 'all checks in Neovim passed (%ss)\n' "$SECONDS"
