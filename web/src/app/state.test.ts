import { expect, test } from "vitest";
import { fromAddress, toAddress } from "./state";

test("an address is a permalink: it gives the state that gives the address", () => {
  for (const address of [
    "/",
    "/runs/abc",
    "/snapshots/s1?t=100-2000&at=150&range=120-160&block=7&line=train.py%3A12&category=gradient" +
      "&q=linear&device=1&process=2&y=0-1000&colour=size&only=0-512&flame=held.inverted",
    "/runs/abc?phase=forward&module=conv1",
    "/diff?a=x&b=y",
  ]) {
    const [path = "", query = ""] = address.split("?");
    const again = toAddress(fromAddress(path, query));
    expect(new URL(again, "http://x").searchParams.toString().split("&").sort()).toEqual(
      new URL(address, "http://x").searchParams.toString().split("&").sort(),
    );
    expect(again.split("?")[0]).toBe(path);
  }
});

test("nonsense in an address selects nothing", () => {
  const state = fromAddress("/runs/a", "t=5-1&y=9-x&at=x&block=&process=none");
  expect(state).toMatchObject({ window: null, bytes: null, at: null, block: null, process: 0 });
});
