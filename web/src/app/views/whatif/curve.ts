// The curves of a what-if: reserved memory as recorded and as replayed.

import type { WhatIf } from "../../../api";
import uPlot from "uplot";
import { axis, byteAxis, fade } from "../../../draw/chart";
import { theme } from "../../../draw/theme";
import { count } from "../../../lib/format";
import { fromZero } from "../../../lib/scales";
import type { App } from "../../state";

/** Both courses event by event, and what is in use; a click chooses a moment, a drag a stretch. */
export function curve(
  app: App,
  t: WhatIf | null,
): { options: Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData } {
  const x = t?.replayed.curve.event ?? [],
    r = t?.recorded.curve,
    cap = t?.capacity_bytes;
  const known = new Map(r?.event.map((e, i) => [e, i])),
    xs = [...new Set([...(r?.event ?? []), ...x])].sort((a, b) => a - b),
    mine = new Map(x.map((e, i) => [e, i]));
  const column = (of: Map<number, number>, values: number[] | undefined) =>
    xs.map((e) => {
      const i = of.get(e);
      return i === undefined ? null : (values?.[i] ?? null);
    });
  const options: Omit<uPlot.Options, "width" | "height"> = {
    padding: [12, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: {
      x: {
        time: false,
        auto: false,
        min: app.get().window?.[0] ?? 0,
        max: app.get().window?.[1] ?? t?.events ?? 1,
      },
      y: { range: (_, low, high) => fromZero(low, high) },
    },
    axes: [axis({ values: (_, ticks) => ticks.map((v) => count(v)), space: 90 }), byteAxis()],
    series: seriesOf(cap !== undefined),
    hooks: {
      draw: [(u) => marks(u, t, app.get().at)],
      ready: [
        (u) =>
          u.over.addEventListener("click", (e) => {
            const at = u.posToVal(e.offsetX, "x");
            app.set({ at: Math.round(at) });
          }),
      ],
      setSelect: [
        (u) => {
          if (u.select.width < 6) return;
          const w: [number, number] = [
            Math.round(u.posToVal(u.select.left, "x")),
            Math.round(u.posToVal(u.select.left + u.select.width, "x")),
          ];
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          app.set({ window: w });
        },
      ],
    },
  };
  return {
    options,
    data: [
      xs,
      column(known, r?.reserved_bytes),
      column(mine, t?.replayed.curve.reserved_bytes),
      column(mine, t?.replayed.curve.active_bytes),
      xs.map(() => cap ?? null),
    ] as uPlot.AlignedData,
  };
}

/** How the curves look; capacity says whether the device's is known. */
function seriesOf(capacity: boolean): uPlot.Series[] {
  const colour = theme();
  return [
    {},
    { label: "reserved, as recorded", stroke: colour("curve-7"), width: 2, spanGaps: true },
    {
      label: "reserved, as replayed",
      stroke: colour("curve-0"),
      width: 2,
      fill: fade(colour("curve-0"), 0.2, 0.02),
      spanGaps: true,
    },
    { label: "in use", stroke: colour("curve-2"), width: 1.25, spanGaps: true },
    {
      label: "the device",
      stroke: colour("limit"),
      width: 1.25,
      dash: [6, 4],
      spanGaps: true,
      show: capacity,
    },
  ];
}

/** Where memory ran out, and the chosen moment. */
function marks(u: uPlot, t: WhatIf | null, at: number | null): void {
  const colour = theme(),
    { ctx } = u,
    { top, height } = u.bbox;
  const draw = (x: number, ink: string, text: string) => {
    const px = Math.round(u.valToPos(x, "x", true));
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(px, top);
    ctx.lineTo(px, top + height);
    ctx.stroke();
    ctx.font = `600 ${11 * devicePixelRatio}px system-ui, sans-serif`;
    const left = px > u.bbox.left + u.bbox.width * 0.8;
    ctx.textAlign = left ? "right" : "left";
    ctx.fillText(text, px + (left ? -5 : 5) * devicePixelRatio, top + 12 * devicePixelRatio);
    ctx.restore();
  };
  const lacks =
    // a request that the record refused ends no replay
    t?.replayed.oom ?? (t?.verdict?.outcome === "avoided" ? undefined : t?.verdict?.event);
  if (lacks !== undefined) draw(lacks, colour("critical"), "out of memory");
  if (at !== null) draw(at, colour("text"), `after event ${count(Math.max(0, at - 1))}`);
}
