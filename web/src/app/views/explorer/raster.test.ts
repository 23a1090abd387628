import { expect, test } from "vitest";
import { area, course, fill, mix, pixel, raster, type Box, type Raster } from "./raster";

const rows = (of: Raster) =>
  Array.from({ length: of.height }, (_, y) =>
    [...of.pixels.subarray(y * of.width, (y + 1) * of.width)].join(""),
  );
const whole = (of: Raster): Box => ({ left: 0, top: 0, right: of.width, bottom: of.height });

test("colours are red, green, blue, opacity from the lowest byte on, and can be mixed", () => {
  expect(pixel("#123")).toBe(0xff332211 | 0);
  expect(pixel("#102030")).toBe(0xff302010 | 0);
  expect(pixel("#ff000080", pixel("#0000ff"))).toBe(0xff7f0080 | 0);
  expect(mix(0xff0000ff | 0, 0xffff0000 | 0, 0.25)).toBe(0xffbf0040 | 0);
});

test("a rectangle is filled where it lies in the box", () => {
  const on = raster(16, 3);
  fill(on, whole(on), -5, 1, 14, 9, 1); // wide
  fill(on, { left: 2, top: 0, right: 4, bottom: 2 }, 0, 0, 16, 3, 2); // narrow
  expect(rows(on)).toEqual(["0022000000000000", "1122111111111100", "1111111111111100"]);
});

test("an area has one colour below its heights and another above, a course joins them", () => {
  const on = raster(4, 4),
    heights = Int32Array.of(3, 1, 1, 9);
  area(on, whole(on), heights, 1, 0);
  expect(rows(on)).toEqual(["0000", "0110", "0110", "1110"]);
  course(on, whole(on), heights, 1, 5);
  expect(rows(on)).toEqual(["0000", "0555", "0515", "5515"]);
});
