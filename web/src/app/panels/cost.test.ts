import { expect, test } from "vitest";
import { cost } from "./cost";

test("cost: MemoryMark's published savings follow from its hours and its price", () => {
  // its README: 113.02 to 113.33 USD at 18 times the speed
  const bert = cost(0.6, 1, 200, 22.1, 21.4, 18);
  expect(bert.perYear).toBe(120);
  expect(bert.saved).toBeCloseTo(113.33, 2);
  expect(bert.unused).toBeCloseTo(0.0317, 3);
  expect(cost(2, 8, 8760, 80, 20, null)).toEqual({
    perYear: 140_160,
    unused: 0.75,
    paid: 105_120,
    saved: null,
  });
  expect(cost(1, 1, 1, 0, 5, 1)).toEqual({ perYear: 1, unused: 0, paid: 0, saved: null });
});
