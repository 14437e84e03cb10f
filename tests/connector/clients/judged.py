"""What a Python client has to find at a connector, whatever its generation."""

import json

READING = ["balance", "senders", "message_status", "sms_templates", "viber_templates", "lookup_number"]
SENDING = ["send_sms", "send_viber", "send_rcs", "send_chain", "create_sms_template"]


def started(program, key):
    """How a client starts a connector itself, which then has the key from its environment."""
    return {"command": program, "args": ["connector", "--stdio", "--state-dir", "started"], "env": {"NOBODY_HAS_IT": key}}


async def judge(client):
    """`client` knows the key that the connector's gateway takes."""
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == READING, listed
    balance = seen(await client.call_tool("balance", {}))
    assert not balance["isError"], balance
    # The client itself held this against the schema of results.
    assert set(balance["structuredContent"]) == {"amount", "currency"}, balance
    assert json.loads(balance["content"][0]["text"]) == balance["structuredContent"], balance
    failed(await client.call_tool("message_status", {"id": "x"}), "invalid_argument")
    try:
        sent = seen(await client.call_tool("send_sms", {"confirm": True}))
    except Exception as error:
        assert "Unknown tool" in str(error), error
    else:
        raise AssertionError(f"a tool that does not exist answered {sent}")


async def judge_stranger(client):
    """`client` has no key: it sees what there is, and a call is answered instead of asking somebody to log in."""
    assert len((await client.list_tools()).tools) == len(READING)
    failed(await client.call_tool("balance", {}), "no_api_key")


async def judge_sending(client):
    """`client` knows the key of a connector that may send, to a gateway where nobody is real."""
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == READING + SENDING, listed
    sms = {"phone": "380501234567", "text": "Hello", "sender": "OlenaCo"}
    for unconfirmed in [{}, sms, {**sms, "confirm": "true"}]:
        refused = seen(await client.call_tool("send_sms", unconfirmed))
        assert not refused["isError"] and refused["structuredContent"]["refused"] is True, refused
    # Several clients come, and the same message goes once a minute.
    sent = seen(await client.call_tool("send_sms", {**sms, "confirm": True, "repeat": True}))
    assert sent["structuredContent"]["accepted"] is True, sent
    status = seen(await client.call_tool("message_status", {"id": sent["structuredContent"]["id"]}))
    assert status["structuredContent"]["type"] == "sms", status
    failed(await client.call_tool("send_sms", {**sms, "confirm": True}), "repeated")


def failed(result, code):
    """Holds a result against an error of a tool: a text alone."""
    result = seen(result)
    assert result["isError"] and result.get("structuredContent") is None, result
    assert json.loads(result["content"][0]["text"])["code"] == code, result


def seen(result):
    """A result by its names on the wire."""
    return result.model_dump(mode="json", by_alias=True)
