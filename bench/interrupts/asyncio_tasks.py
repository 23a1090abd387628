"""An event loop with tasks."""

import asyncio


async def work() -> None:
    while True:
        sum(range(10_000))
        await asyncio.sleep(0.001)


async def main() -> None:
    tasks = [asyncio.create_task(work()) for _ in range(4)]
    print("ready", flush=True)
    await asyncio.gather(*tasks)


asyncio.run(main())
