"""Second generation of the Python client, in each of its lifecycles: `second.py URL KEY SENDING PROGRAM`.

SENDING is the address of a connector that can send. PROGRAM is the program that the client starts over stdio."""

import asyncio
import sys

import httpx2
from judged import check_reading, check_sending, check_without_key, stdio_command
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


async def main(url, key, sending, program):
    authorized = {"Authorization": f"Bearer {key}"}
    for mode, revision in REVISIONS.items():
        cases = [(url, authorized, check_reading), (url, {}, check_without_key), (sending, authorized, check_sending)]
        for place, headers, check in cases:
            async with httpx2.AsyncClient(headers=headers) as http:
                await converse(streamable_http_client(place, http_client=http), mode, revision, check)
        await converse(stdio_client(StdioServerParameters(**stdio_command(program, key))), mode, revision, check_reading)


async def converse(transport, mode, revision, check):
    async with Client(transport, mode=mode) as client:
        assert client.protocol_version == revision, (mode, client.protocol_version)
        await check(client)


asyncio.run(main(*sys.argv[1:]))
