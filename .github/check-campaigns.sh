#!/usr/bin/env bash
# Checks campaign files for action.yml, which sets the variables. Prints annotations, and writes a SARIF log if wanted.
# It never fetches lists: a pull request decides what its campaign files say.
set -euo pipefail
program=${CAMPAIGN_PROGRAM:-campaign}
options=()
[ "${CAMPAIGN_STRICT:-true}" != true ] || options+=(--strict)
# Patterns become files; a pattern without any file stays as it is, and `check` reports it.
# shellcheck disable=SC2206
files=(${CAMPAIGN_FILES:-campaigns/*.yaml})
code=0
"$program" check "${options[@]}" --format github -- "${files[@]}" || code=$?
if [ -n "${CAMPAIGN_SARIF:-}" ]; then
    # 2 means that there are findings, which the log contains.
    "$program" check "${options[@]}" --format sarif -- "${files[@]}" >"$CAMPAIGN_SARIF" || [ $? = 2 ]
fi
exit "$code"
