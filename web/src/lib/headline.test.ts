import { expect, test } from "vitest";
import { headed } from "./headline";

test("a headline has one figure, and nothing is lost below it", () => {
  for (const [said, head, rest] of [
    [
      "Device 0 of a.pickle ran out of memory at event 100 of 179, asked for 1.00 GiB. " +
        "It held at most 19.6 GiB, after event 99",
      "Device 0 of a.pickle ran out of memory at event 100 of 179, asked for 1.00 GiB",
      "It held at most 19.6 GiB, after event 99; so",
    ],
    [
      "Does not fit on Tesla T4: out of memory, 14.6 GiB in use of 14.6 GiB and 256 MiB " +
        "asked for (imagined)",
      "Does not fit on Tesla T4: out of memory",
      "14.6 GiB in use of 14.6 GiB and 256 MiB asked for (imagined); so",
    ],
    [
      "Peak 862 MiB PSS ± 25.1 MiB of 5 processes (estimated; 2.76 GiB RSS) in step 40",
      "Peak 862 MiB PSS",
      "± 25.1 MiB of 5 processes (estimated; 2.76 GiB RSS) in step 40; so",
    ],
    [
      "Device 0 of b.pickle held at most 51.3 GiB in a trace that begins with 12.8 GiB in " +
        "use, after event 19,763",
      "Device 0 of b.pickle held at most 51.3 GiB",
      "in a trace that begins with 12.8 GiB in use, after event 19,763; so",
    ],
    [
      "Peak 798 MiB PSS of 3 processes (estimated; 1.10 GiB RSS, " +
        "where shared pages count in each) in step 275",
      "Peak 798 MiB PSS of 3 processes",
      "(estimated; 1.10 GiB RSS, where shared pages count in each) in step 275; so",
    ],
    [
      "Peak 211 MiB (measured), 1.19 s after the start",
      "Peak 211 MiB (measured)",
      "1.19 s after the start; so",
    ],
    ["Peak 211 MiB (measured) in step 12", "Peak 211 MiB (measured) in step 12", "so"],
    ["3.00 GiB of 4.00 GiB", "3.00 GiB of 4.00 GiB", "so"],
  ] as const)
    expect(headed([said, "so"])).toEqual({ head, rest });
  expect(headed([])).toEqual({ head: "", rest: "" });
});
