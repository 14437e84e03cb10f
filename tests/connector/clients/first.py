"""First generation of the Python client, which starts with a handshake: `first.py URL KEY SENDING PROGRAM`.

SENDING is the address of a connector that can send. PROGRAM is the program that the client starts over stdio."""

import asyncio
import sys

from judged import check_reading, check_sending, check_without_key, stdio_command
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key, sending, program):
    authorized = {"Authorization": f"Bearer {key}"}
    cases = [(url, authorized, check_reading), (url, {}, check_without_key), (sending, authorized, check_sending)]
    for place, headers, check in cases:
        async with streamablehttp_client(place, headers=headers) as (read, write, _):
            await converse(read, write, check)
    async with stdio_client(StdioServerParameters(**stdio_command(program, key))) as (read, write):
        await converse(read, write, check_reading)


async def converse(read, write, check):
    async with ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.protocolVersion == "2025-11-25", hello
        await check(session)


asyncio.run(main(*sys.argv[1:]))
