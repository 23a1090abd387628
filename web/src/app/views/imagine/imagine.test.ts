import type { GPUVerdict } from "../../../api";
import { expect, test } from "vitest";
import { cheapest } from ".";

test("the cheapest GPU that fits surely, else the cheapest that fits at all", () => {
  const of = (gpu: string, verdict: string, price?: number): GPUVerdict => ({
    gpu,
    gpu_name: gpu,
    verdict,
    total_bytes: 1,
    context_overhead_bytes: 0,
    label: "imagined",
    ...(price === undefined ? {} : { price_usd_per_hour: price }),
  });
  const small = of("small", "oom", 0.1),
    tight = of("tight", "tight", 0.2),
    large = of("large", "fits", 0.9),
    larger = of("larger", "fits", 0.5),
    unpriced = of("unpriced", "fits");
  expect(cheapest([large, small, tight, unpriced, larger])).toBe(larger);
  expect(cheapest([small, tight, unpriced])).toBe(tight);
  expect(cheapest([small, unpriced])).toBeNull();
});
