import { expect, test } from "vitest";
import { newest } from "./newest";

test("what is asked for while it runs is done once, with what holds then", async () => {
  let now = 1,
    ends = () => {},
    settled = 0;
  const done: number[] = [],
    ask = newest(
      () => {
        const is = now;
        return new Promise((end) => {
          ends = () => {
            done.push(is);
            end();
          };
        });
      },
      () => settled++,
    );
  const turn = async () => {
    ends();
    await new Promise((next) => setTimeout(next));
  };
  ask();
  for (now = 2; now < 5; now++) ask();
  await turn();
  expect([done, settled]).toEqual([[1], 0]);
  await turn();
  expect([done, settled]).toEqual([[1, 5], 1]);
  now = 6;
  ask();
  await turn();
  expect([done, settled]).toEqual([[1, 5, 6], 2]);
});
