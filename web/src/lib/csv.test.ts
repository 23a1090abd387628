import { expect, test } from "vitest";
import { csv } from "./csv";

test("figures stay integers, what is absent stays empty, and a name is never a formula", () => {
  const columns = [
    { name: "line", title: "line" },
    { name: "bytes", title: "bytes", unit: "bytes", label: "sampled" },
    { name: "n", title: "", unit: "count" },
  ] as const;
  expect(
    csv(
      [...columns],
      [
        ['a, "b".py:3', 1024, null],
        ["=1+1", 0, 2],
      ],
    ),
  ).toBe('line,bytes (bytes) sampled,n (count)\r\n"a, ""b"".py:3",1024,\r\n\'=1+1,0,2\r\n');
});
