#!/usr/bin/env bash
# Builds the image of deploy/Containerfile with buildah and runs it: its user, its volume, the server and a rehearsal.
#
# tests/packages/container.sh [PROGRAM]
#
# Without the registry of the base images, only the last stage is built: on the minimal Debian of tests/packages/deb.sh
# and with PROGRAM, or a debug binary. The log says so. Without buildah, nothing is tested, and the log says so too.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/scripts.sh"
if ! command -v buildah >/dev/null; then
    echo "not tested: buildah is not installed (Debian: buildah)"
    exit 0
fi
need curl python3
root=$(realpath "$here/../..")
base=${CAMPAIGN_CHROOT:-${CARGO_TARGET_DIR:-$root/target}/chroot}
argument=${1:-}
[ -z "$argument" ] || argument=$(realpath "$argument")
in_a_folder
# Needs no device mapper, user namespace or network namespace of its own.
export BUILDAH_ISOLATION=chroot
storage=(--storage-driver vfs --root "$folder/storage" --runroot "$folder/run")
image=localhost/campaign-test
container= runner= server=
end_container() {
    [ -z "$server" ] || kill "$server"
    [ -z "$runner" ] || wait "$runner" || true
    [ -z "$container" ] || buildah "${storage[@]}" rm "$container" >/dev/null || true
    end
}
trap end_container EXIT

if buildah "${storage[@]}" pull --quiet docker.io/library/debian:bookworm-slim >pull.log 2>&1; then
    echo "== building the image of deploy/Containerfile"
    buildah "${storage[@]}" bud --quiet -t "$image" -f "$root/deploy/Containerfile" "$root" >build.log 2>&1 ||
        { tail -n 20 build.log >&2; fail "the build failed"; }
else
    tail -n 1 pull.log
    echo "== the base images cannot be reached: the stage \`build\` is not tested"
    [ -e "$base/complete" ] || fail "no minimal Debian in \`$base\`: run tests/packages/deb.sh first"
    program_or_build "$argument"
    mkdir context
    cp "$program" context/campaign
    container=$(buildah "${storage[@]}" from scratch)
    buildah "${storage[@]}" add --quiet "$container" "$base" / >/dev/null
    buildah "${storage[@]}" commit --quiet "$container" localhost/debian-minimal >/dev/null
    buildah "${storage[@]}" rm "$container" >/dev/null
    container=
    # The last stage, on the local base and with the program that is already built.
    sed -n '/^FROM debian/,$p' "$root/deploy/Containerfile" |
        sed -e 's#^FROM .*#FROM localhost/debian-minimal#' -e 's#^COPY --from=build [^ ]*#COPY campaign#' >Containerfile
    buildah "${storage[@]}" bud --quiet -t "$image" -f Containerfile context >build.log 2>&1 ||
        { tail -n 20 build.log >&2; fail "the build failed"; }
fi
container=$(buildah "${storage[@]}" from "$image")
read_config() {
    buildah "${storage[@]}" inspect "$container" |
        python3 -c 'import json, sys; print("\n".join(json.load(sys.stdin)["OCIv1"]["config"].get(sys.argv[1]) or []))' "$1"
}
inside() { buildah "${storage[@]}" run "$container" -- "$@"; }

echo "== the server, as the image starts it"
mapfile -t command < <(read_config Entrypoint; read_config Cmd)
[ "${command[*]}" = "/usr/local/bin/campaign serve --listen 0.0.0.0:8040 --json" ] || fail "it starts \`${command[*]}\`"
[ "$(inside id -u)" = 10001 ] || fail "it runs as $(inside id -u)"
[ "$(inside sh -c 'echo $CAMPAIGN_STATE_DIR')" = /state ] || fail "the ledger is not in /state"
inside "${command[@]/0.0.0.0:8040/127.0.0.1:0}" >server.json &
runner=$!
until [ -s server.json ]; do kill -0 "$runner" || fail "the server ended"; sleep 0.1; done
# The runner passes no signals on: the server itself is stopped.
read -r server address < <(python3 -c 'import json; told = json.loads(open("server.json").readline()); print(told["pid"], told["listen"])')
curl -fsS "http://$address/healthz" >/dev/null || fail "the server does not answer"

echo "== a rehearsal with the server's ledger"
inside sh -c 'cd /campaigns && campaign init welcome --quiet && campaign run welcome.yaml' >run.log 2>&1 ||
    { cat run.log >&2; fail "the rehearsal failed"; }
grep -q "This was a rehearsal" run.log || fail "no rehearsal: $(cat run.log)"
inside test -e /state/ledger.sqlite || fail "no ledger in /state"
printf '== all passed\n'
