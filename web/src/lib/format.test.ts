import { describe, expect, test } from "vitest";
import {
  byteTick,
  bytes,
  commandLine,
  count,
  duration,
  percent,
  place,
  quantity,
  programOf,
  sentence,
  tick,
  wallClock,
} from "./format";

describe("format", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [1536, "1.50 KiB"],
    [-3 * 2 ** 20, "−3.00 MiB"],
    [10.5 * 2 ** 30, "10.5 GiB"],
    [1023.9 * 2 ** 20, "1.00 GiB"],
    [5 * 2 ** 40, "5.00 TiB"],
    [8.125 * 2 ** 20, "8.12 MiB"],
    [8.375 * 2 ** 20, "8.38 MiB"],
    [12.25 * 2 ** 30, "12.2 GiB"],
    [2 ** 63, "8.00 EiB"],
  ])("bytes %d", (v, want) => expect(bytes(v)).toBe(want));
  test.each([
    [0, "0"],
    [512 * 2 ** 20, "512 MiB"],
    [1.5 * 2 ** 30, "1.5 GiB"],
    [-1024, "−1 KiB"],
  ])("byteTick %d", (v, want) => expect(byteTick(v)).toBe(want));
  test.each([
    [0, "ns", "0"],
    [3 * 2 ** 30, "bytes", "3 GiB"],
    [2e8, "ns", "200 ms"],
    [6e10, "ns", "60 s"],
    [1500, "milli", "150 %"],
    [2500, "count", "2.5 k"],
    [64, "count", "64"],
  ] as const)("tick %d in %s", (v, unit, want) => expect(tick(v, unit)).toBe(want));
  test.each([
    [0, "0 s"],
    [4, "4 ns"],
    [1500, "1.50 µs"],
    [12_345_678, "12.3 ms"],
    [999.7e6, "1.00 s"],
    [4.214e9, "4.21 s"],
    [59.97e9, "1 min 00 s"],
    [125e9, "2 min 05 s"],
    [3720e9, "1 h 02 min"],
    [3600e9 * 72, "3 d 00 h"],
    [-2e9, "−2.00 s"],
  ])("duration %d", (v, want) => expect(duration(v)).toBe(want));
  test("absent is not zero", () => {
    expect(quantity(null, "bytes")).toBe("–");
    expect(quantity(undefined, "")).toBe("–");
    expect(quantity(0, "bytes")).toBe("0 B");
  });
  test.each([
    ["milli", 250, "25.0 %"],
    ["milli", 1000, "100 %"],
    ["celsius", 61, "61 °C"],
    ["mW", 295_000, "295 W"],
    ["mW", 7_250, "7.3 W"],
    ["ns", 5e6, "5.00 ms"],
    ["count", 1500, "1,500"],
  ] as const)("quantity in %s", (unit, v, want) => expect(quantity(v, unit)).toBe(want));
  test("small figures", () => {
    expect(count(1234567)).toBe("1,234,567");
    expect(count(-4)).toBe("−4");
    expect(percent(0.2)).toBe("< 0.1 %");
    expect(wallClock(1_700_000_000_000_000_000)).toBe("2023-11-14 22:13:20 UTC");
  });
  test("texts", () => {
    expect(place("/a/b/train.py", 61)).toBe("train.py:61");
    expect(place("libc.so.6")).toBe("libc.so.6");
    expect(place("/a/")).toBe("/a/");
    expect(
      ["grows 2.68 MiB", "train.py:9 held the most", "`x = f()` keeps growing", ""].map(sentence),
    ).toEqual(["Grows 2.68 MiB", "train.py:9 held the most", "`x = f()` keeps growing", ""]);
    expect(commandLine(["python", "a b.py", "it's", "--lr=0.1"])).toBe(
      "python 'a b.py' 'it'\\''s' --lr=0.1",
    );
  });
});

test("a command begins with its script", () => {
  const of = (line: string) => programOf(line.split(" ")).join(" ");
  expect(of("/usr/bin/python3 -u -X dev /home/mia/train.py --lr 3")).toBe("train.py --lr 3");
  expect(of("python3.12 -m torch.distributed.run train.py")).toBe("torch.distributed.run train.py");
  expect(of("/usr/bin/python -c pass")).toBe("python -c pass");
  expect(of("/opt/bin/torchrun --nproc-per-node 2 train.py")).toBe(
    "torchrun --nproc-per-node 2 train.py",
  );
  expect(of("python")).toBe("python");
  expect(programOf([])).toEqual([]);
});
