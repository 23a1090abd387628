// The lessons of the page of a matrix.

import type { Lesson } from "./lesson";

const interval =
    "The 95 % confidence interval of a mean: " +
    "where the true mean lies, as far as the trials can tell.",
  cell = "One combination of the axes.",
  trial = "One run of a cell.";

export const matrixLessons: Record<string, Lesson> = {
  advice: {
    is:
      "What follows from the figures, in sentences, each with the cells it rests on. " +
      "A sentence stands here only where the intervals allow it.",
    good: "A choice that takes less and costs nothing you need.",
    bad: "Cells that fail: the sentence says how many and how.",
    terms: { cell },
  },
  filters: {
    is:
      "Which cells all charts and tables of this page show, and which figure. " +
      "The address holds the choice, so a link shows the same.",
    good: "One axis at a time, everything else equal.",
    bad: "Means over cells that have little in common.",
  },
  baseline: {
    is:
      "Each row sets a cell's figure beside that of an earlier result. " +
      "It is worse or better only where the whole interval of the ratio lies beyond what is " +
      "allowed.",
    good: "The same, or better.",
    bad: "Worse. Not decided means that the trials are too few or too scattered to say.",
    terms: { interval },
  },
  bars: {
    is:
      "Each bar is the mean over a cell's trials, the dots; the line on it is the 95 % " +
      "interval of that mean, or the range of the trials. " +
      "A cell that failed shows a sign with its reason.",
    good: "Short lines: the figure is known well.",
    bad: "Lines that overlap: the cells may be equal, whatever their bars say.",
    terms: { cell, trial, interval },
  },
  scaling: {
    is:
      "Points are cells with their interval; a line is fitted to all points of its colour, " +
      "and its band holds the true mean with 95 % confidence. " +
      "Dashes are a prediction beyond the measured points.",
    good: "Points on their line: then the prediction can be used.",
    bad: "Points that bend away from it.",
    terms: {
      interval,
      "predicted limit":
        "The largest value at which the fitted line still fits the device's memory.",
    },
  },
  heat: {
    is:
      "Each field is a cell at its values of the two axes; the deeper its colour, " +
      "the more it needs, on one scale for all panels. " +
      "Hatched fields failed, with a sign of how; empty ones are not part of the matrix.",
    good: "Colours that deepen evenly along an axis.",
    bad: "One deep field among pale ones: another algorithm, or a fault.",
    terms: { cell },
  },
  ratios: {
    is:
      "Each row compares two values of an axis over all pairs of cells that differ in nothing " +
      "else: their mean ratio with its 95 % interval. " +
      "It is a verdict only where the whole interval lies on one side of × 1; " +
      "small points are the pairs.",
    good: "A narrow interval on one side of × 1.",
    bad: "An interval across × 1: no difference is known.",
    terms: { interval },
  },
  cells: {
    is:
      "Each row is a cell with what became of it and its figures, " +
      "as means over its finished trials. From and to are the 95 % interval of the mean, " +
      "or the range of the trials where there is none.",
    good: "Done, with a narrow interval.",
    bad: "Failed, timed out or out of memory: the state says why.",
    terms: { cell, trial },
  },
};
