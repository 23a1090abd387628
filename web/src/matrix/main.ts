// The page of a matrix:
//
//	columns in the page ──▶ model ──▶ view, which the address holds ──▶ sections, which follow it

import "../style/theme.css";
import "../style/page.css";
import { darkAtFirst, painted } from "../draw/paint";
import { embedded } from "../lib/embedded";
import { h } from "../views/dom";
import { bar } from "../views/header";
import { teaching } from "../views/learn";
import { Model, type Packed } from "./model";
import { go, linked, opened, parts } from "./page";
import "./matrix.css";
import "../style/print.css";

const app = document.getElementById("app")!;
const packed = await embedded<Packed>("hightide-matrix");
if (packed) open(new Model(packed));
else
  app.append(
    h(
      "p",
      {},
      "This page has no matrix in it. Make one with: hightide bench matrix.yaml --html matrix.html",
    ),
  );

function open(model: Model): void {
  const { page, elements } = opened(model, darkAtFirst());
  document.title = `${model.packed.name || "matrix"} · hightide`;
  painted(page);
  teaching(true);
  app.append(...elements);
  const top = bar(
    page,
    parts.filter(([id]) => document.getElementById(id)),
  );
  app.before(top);
  linked(top, page);
  setTimeout(() => go(page.get().at, "instant")); // once the charts have their height
}
