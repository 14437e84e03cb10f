#!/usr/bin/env bash
# Published clients of the Model Context Protocol, run against `campaign connector` with `campaign sandbox` as its gateway:
# the conformance suite, the Inspector command line and both generations of the Python client, from their registries.
#
# tests/connector/clients.sh [PROGRAM]   PROGRAM is a built `campaign`; the default is a new debug build.
#
# Needs npm, python3 with venv, timeout; Node 22 or newer (installed with the clients on Linux x86-64).
# All files are in a temporary folder that is removed at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/scripts.sh"
key=sandbox

need npm python3 timeout
python3 -c 'import ensurepip, venv' 2>/dev/null || fail "needs Python's \`venv\` and \`ensurepip\`: install python3-venv"
program_or_build "${1:-}"
in_a_folder

# Runs one client for at most two minutes. Prints its output if it fails.
client() {
    local name=$1 began=$SECONDS
    shift
    if ! timeout 120 "$@" >client.log 2>&1; then
        tail -n 60 client.log >&2
        fail "$name failed"
    fi
    printf 'ok  %s (%ss)\n' "$name" "$((SECONDS - began))"
}

# Prints the address that a server reported.
url_in() {
    python3 -c 'import json, sys; server = json.load(open(sys.argv[1])); print(server.get("base_url") or server["url"])' "$1"
}

npm_packages "@modelcontextprotocol/conformance@0.2.0-alpha.12" "@modelcontextprotocol/inspector@2.12.0"
for generation in first:1.30.0 second:2.3.0; do
    python3 -m venv "${generation%:*}"
    timeout 300 "${generation%:*}/bin/pip" install --quiet --disable-pip-version-check "mcp==${generation#*:}" ||
        fail "pip cannot install mcp ${generation#*:}; the package registry must be reachable"
done
printf 'ok  clients are installed (%ss)\n' "$SECONDS"

serve sandbox.json sandbox
url=$(url_in sandbox.json)
printf 'local: { base_url: "%s", async_url: "%s", api_key: { env: NOBODY_HAS_IT }, rate: unlimited }\n' "$url" "$url" >gateways.yaml
serve connector.json connector --state-dir state
mcp=$(url_in connector.json)/mcp
serve sending.json connector --state-dir state --allow-send
sending=$(url_in sending.json)/mcp

for revision in 2026-07-28 2025-11-25; do
    client "conformance suite, $revision" conformance server --url "$sending" --requirements "$revision" \
        --expected-failures "$here/clients/$revision.yaml"
done

# The Inspector must print the result of a call, even of an unconfirmed one.
inspect() {
    local call=(inspector --cli "$sending" --header "Authorization: Bearer $key" --protocol-era "$1" --method tools/call)
    "${call[@]}" --tool-name balance --tool-args-json '{}' >result.json || return 1
    "${call[@]}" --tool-name send_sms --tool-args-json '{}' >refused.json || return 1
    python3 -c 'import json
result, refused = (json.load(open(name)) for name in ["result.json", "refused.json"])
assert not result["isError"] and result["structuredContent"]["currency"] == "UAH", result
assert not refused["isError"] and refused["structuredContent"]["refused"] is True, refused'
}
export -f inspect
export sending key
for era in legacy auto modern; do
    client "Inspector, $era" bash -c 'inspect "$0"' "$era"
done

for generation in first second; do
    client "Python client, $generation generation" env PYTHONDONTWRITEBYTECODE=1 "$generation/bin/python" "$here/clients/$generation.py" "$mcp" "$key" "$sending" "$program"
done
printf 'all published clients passed (%ss)\n' "$SECONDS"
