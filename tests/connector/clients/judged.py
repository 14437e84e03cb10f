"""Checks of a connector that both generations of the Python client share."""

import json

READING = ["balance", "senders", "message_status", "sms_templates", "viber_templates", "lookup_number"]
SENDING = ["send_sms", "send_viber", "send_rcs", "send_chain", "create_sms_template"]


def stdio_command(program, key):
    """Parameters with which a client starts a connector over stdio. The key is in its environment."""
    return {"command": program, "args": ["connector", "--stdio", "--state-dir", "started"], "env": {"NOBODY_HAS_IT": key}}


async def check_reading(client):
    """Checks a client that has a valid key."""
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == READING, listed
    balance = as_json(await client.call_tool("balance", {}))
    assert not balance["isError"], balance
    # The client itself validated this against the output schema.
    assert set(balance["structuredContent"]) == {"amount", "currency"}, balance
    assert json.loads(balance["content"][0]["text"]) == balance["structuredContent"], balance
    assert_error(await client.call_tool("message_status", {"id": "x"}), "invalid_argument")
    try:
        sent = as_json(await client.call_tool("send_sms", {"confirm": True}))
    except Exception as error:
        assert "Unknown tool" in str(error), error
    else:
        raise AssertionError(f"a tool that does not exist answered {sent}")


async def check_without_key(client):
    """Checks a client without a key: it can list the tools, and a call returns an error instead of a login request."""
    assert len((await client.list_tools()).tools) == len(READING)
    assert_error(await client.call_tool("balance", {}), "no_api_key")


async def check_sending(client):
    """Checks a client of a connector that can send to the sandbox."""
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == READING + SENDING, listed
    sms = {"phone": "380501234567", "text": "Hello", "sender": "OlenaCo"}
    for unconfirmed in [{}, sms, {**sms, "confirm": "true"}]:
        refused = as_json(await client.call_tool("send_sms", unconfirmed))
        assert not refused["isError"] and refused["structuredContent"]["refused"] is True, refused
    # Several clients send the same message, which normally is sent once a minute.
    sent = as_json(await client.call_tool("send_sms", {**sms, "confirm": True, "repeat": True}))
    assert sent["structuredContent"]["accepted"] is True, sent
    status = as_json(await client.call_tool("message_status", {"id": sent["structuredContent"]["id"]}))
    assert status["structuredContent"]["type"] == "sms", status
    assert_error(await client.call_tool("send_sms", {**sms, "confirm": True}), "repeated")


def assert_error(result, code):
    """Fails unless the result is a tool error with this code: text without structured content."""
    result = as_json(result)
    assert result["isError"] and result.get("structuredContent") is None, result
    assert json.loads(result["content"][0]["text"])["code"] == code, result


def as_json(result):
    """Returns a result with the member names of the protocol."""
    return result.model_dump(mode="json", by_alias=True)
