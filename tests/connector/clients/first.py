"""The first generation of the Python client, which begins with a handshake: `first.py URL KEY SENDING PROGRAM`, the third
the address of a connector that may send, the last the program that it starts itself."""

import asyncio
import sys

from judged import judge, judge_sending, judge_stranger, started
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key, sending, program):
    known = {"Authorization": f"Bearer {key}"}
    for place, headers, judged in [(url, known, judge), (url, {}, judge_stranger), (sending, known, judge_sending)]:
        async with streamablehttp_client(place, headers=headers) as (read, write, _):
            await converse(read, write, judged)
    async with stdio_client(StdioServerParameters(**started(program, key))) as (read, write):
        await converse(read, write, judge)


async def converse(read, write, judged):
    async with ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.protocolVersion == "2025-11-25", hello
        await judged(session)


asyncio.run(main(*sys.argv[1:]))
