import { expect, test, vi } from "vitest";
import { waiting, whileShown } from "./shown";

test("a page that is drawn 200 times holds one picture, and one listener of the window", () => {
  const listeners: (() => void)[] = [];
  vi.stubGlobal("addEventListener", (_: string, then: () => void) => {
    listeners.push(then);
  });
  let drawn = 0,
    before = { isConnected: false };
  for (let i = 0; i < 200; i++) {
    const element = { isConnected: false }; // made, then put in the place of the one before
    whileShown(element, "hightide:theme", () => {
      drawn++;
    });
    before.isConnected = false;
    element.isConnected = true;
    before = element;
  }
  expect(listeners.length).toBe(1);
  expect(waiting("hightide:theme")).toBeLessThanOrEqual(2);
  listeners[0]!();
  expect(drawn).toBe(1);
  expect(waiting("hightide:theme")).toBe(1);
  before.isConnected = false;
  listeners[0]!();
  expect([drawn, waiting("hightide:theme")]).toEqual([1, 0]);
  vi.unstubAllGlobals();
});
