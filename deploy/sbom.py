#!/usr/bin/env python3
"""Prints the software bill of materials of the program as CycloneDX 1.5: deploy/sbom.py VERSION

It reads Cargo.lock through `cargo metadata`, offline. It lists the crates that are linked into the program for
x86_64 Linux, with versions, licences and checksums. Crates that only tests, build scripts or macros use are left out.
"""

import json
import os
import pathlib
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
OWN_LICENCE = "MIT OR Apache-2.0"


def load_metadata() -> dict:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", TARGET]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def linked_packages(metadata: dict) -> tuple[str, dict[str, list[str]]]:
    """The identifier of the program, and what each linked package depends on."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    macros = {
        package["id"]
        for package in metadata["packages"]
        if any("proc-macro" in target["kind"] for target in package["targets"])
    }
    program = metadata["resolve"]["root"]
    found: dict[str, list[str]] = {}
    pending = [program]
    while pending:
        package = pending.pop()
        if package in found:
            continue
        found[package] = [
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if dependency["pkg"] not in macros | {program} and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        pending += found[package]
    return program, found


def read_checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(each["name"], each["version"]): each["checksum"] for each in lock["package"] if "checksum" in each}


def package_url(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def describe(package: dict, kind: str, version: str, checksum: str | None) -> dict:
    component = {"type": kind, "bom-ref": package_url(package), "name": package["name"], "version": version}
    if checksum:
        component["purl"] = package_url(package)
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    # Older crates write `MIT/Apache-2.0`, which is not an SPDX expression. The crates of the program share its licence.
    licence = package["license"] or OWN_LICENCE
    component["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    return component


def main(version: str) -> None:
    metadata = load_metadata()
    packages = {package["id"]: package for package in metadata["packages"]}
    program, linked = linked_packages(metadata)
    checksums = read_checksums()
    components = []
    for identifier in sorted(linked, key=lambda each: package_url(packages[each])):
        package = packages[identifier]
        if identifier != program:
            checksum = checksums.get((package["name"], package["version"]))
            components.append(describe(package, "library", package["version"], checksum))
    made = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    names = "\n".join(component["bom-ref"] for component in components)
    print(
        json.dumps(
            {
                "bomFormat": "CycloneDX",
                "specVersion": "1.5",
                # The same content always gets the same serial number.
                "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'campaign {version} {names}')}",
                "version": 1,
                "metadata": {
                    "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "component": describe(packages[program], "application", version, None),
                },
                "components": components,
                "dependencies": [
                    {"ref": package_url(packages[each]), "dependsOn": sorted({package_url(packages[on]) for on in linked[each]})}
                    for each in sorted(linked, key=lambda each: package_url(packages[each]))
                ],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
