"""The first generation of the Python client, which begins with a handshake: `first.py URL KEY`."""

import asyncio
import sys

from judged import judge, judge_stranger
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key):
    for headers, judged in [({"Authorization": f"Bearer {key}"}, judge), ({}, judge_stranger)]:
        async with streamablehttp_client(url, headers=headers) as (read, write, _):
            async with ClientSession(read, write) as session:
                hello = await session.initialize()
                assert hello.protocolVersion == "2025-11-25", hello
                await judged(session)


asyncio.run(main(*sys.argv[1:]))
