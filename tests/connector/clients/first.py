"""The first generation of the Python client, which begins with a handshake: `first.py URL KEY SENDING`,
the last the address of a connector that may send."""

import asyncio
import sys

from judged import judge, judge_sending, judge_stranger
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key, sending):
    known = {"Authorization": f"Bearer {key}"}
    for place, headers, judged in [(url, known, judge), (url, {}, judge_stranger), (sending, known, judge_sending)]:
        async with streamablehttp_client(place, headers=headers) as (read, write, _):
            async with ClientSession(read, write) as session:
                hello = await session.initialize()
                assert hello.protocolVersion == "2025-11-25", hello
                await judged(session)


asyncio.run(main(*sys.argv[1:]))
