"""A hand-written campaign script for comparison, with csv, jinja2 and aiohttp.

    script.py LIST URL RESULTS

It does not check phone numbers or record intents. A second run starts from the beginning.
"""

import asyncio
import csv
import sys

import aiohttp
import jinja2

BATCH = 100
IN_FLIGHT = 16
TEXT = "Hello {{ first_name }} {{ last_name }}, {{ shop }} has -20% for you until {{ until }}: https://shop.example/?c={{ code }}"


def operations(path):
    template = jinja2.Environment().from_string(TEXT)
    with open(path, newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            text = template.render(row, shop="Olena & Co")
            phone = int(row["phone"])
            yield {"type": "sms", "id": number, "phone": phone, "sms_signature": "OlenaCo", "sms_message": text}


def batches(path):
    batch = []
    for operation in operations(path):
        batch.append(operation)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def main(path, url, out):
    with open(out, "w", newline="", encoding="utf-8") as file:
        results = csv.writer(file)
        results.writerow(["id", "phone", "state", "msg_id", "parts"])

        async def send(session, batch):
            async with session.post(f"{url}/api/json.php", json={"auth": "key", "data": batch}) as response:
                answer = await response.json()
            for operation, item in zip(batch, answer["data"]):
                sent = item.get("data") or {}
                state = "accepted" if item["success"] else "rejected"
                results.writerow([operation["id"], operation["phone"], state, sent.get("msg_id"), sent.get("parts")])

        waiting = batches(path)

        async def send_all(session):
            for batch in waiting:
                await send(session, batch)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT)) as session:
            await asyncio.gather(*(send_all(session) for _ in range(IN_FLIGHT)))


asyncio.run(main(*sys.argv[1:]))
