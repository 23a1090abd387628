"""Timers of an event loop that are due in an hour and are never cancelled: each keeps what its callback was given.

truth: leak cause=_scheduled|TimerHandle
"""

import asyncio


async def main():
    loop = asyncio.get_running_loop()
    for _ in range(600):
        request = bytearray(100_000)  # LEAK
        loop.call_later(3600, len, request)  # LEAK
        await asyncio.sleep(0.005)


asyncio.run(main())
