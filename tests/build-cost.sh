#!/usr/bin/env bash
# Measures what the README's commands cost on a fresh machine: in a clone with an empty target folder, one after the other,
# as a newcomer types them. `cargo install` builds into an empty folder of its own.
#
# tests/build-cost.sh [REPOSITORY]   the repository to clone; without it the one that this script is in.
#
# The downloads are fetched before the clock starts. Compare seconds of CPU: the elapsed time depends on the machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/support/scripts.sh"
need git cargo
repository=$(realpath "${1:-$here/..}")
in_a_folder

git clone --quiet "$repository" campaign
cd campaign
unset CARGO_TARGET_DIR CARGO_INCREMENTAL
# The first command rehearses a campaign. It must not use the user's own ledger.
export CAMPAIGN_STATE_DIR=$PWD/../state
cargo fetch --locked --quiet

# Runs a command and prints what it took. Its own output is in a file, which is shown if it fails.
cost() {
    local folder=${CARGO_TARGET_DIR:-target}
    local TIMEFORMAT='%R %U %S' took
    took=$( { time "$@" >../output 2>&1; } 2>&1 ) || { tail -n 40 ../output >&2; fail "\`$*\` failed"; }
    local elapsed user system
    read -r elapsed user system <<<"$took"
    awk -v command="$*" -v elapsed="$elapsed" -v user="$user" -v sys="$system" -v size="$(du -sm "$folder" | cut -f1)" \
        'BEGIN { printf "%-45s %5d s of CPU  %5d s elapsed  %5d MiB\n", command, user + sys, elapsed, size }'
}

cost cargo run -- run campaigns/welcome.yaml
cost cargo test --no-run
cost cargo test
CARGO_TARGET_DIR=optimized cost cargo install --locked --path . --root ../installed
