"""The second generation of the Python client, in each of its lifecycles: `second.py URL KEY SENDING PROGRAM`, the third the
address of a connector that may send, the last the program that it starts itself."""

import asyncio
import sys

import httpx2
from judged import judge, judge_sending, judge_stranger, started
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


async def main(url, key, sending, program):
    known = {"Authorization": f"Bearer {key}"}
    for mode, revision in REVISIONS.items():
        for place, headers, judged in [(url, known, judge), (url, {}, judge_stranger), (sending, known, judge_sending)]:
            async with httpx2.AsyncClient(headers=headers) as http:
                await converse(streamable_http_client(place, http_client=http), mode, revision, judged)
        await converse(stdio_client(StdioServerParameters(**started(program, key))), mode, revision, judge)


async def converse(transport, mode, revision, judged):
    async with Client(transport, mode=mode) as client:
        assert client.protocol_version == revision, (mode, client.protocol_version)
        await judged(client)


asyncio.run(main(*sys.argv[1:]))
