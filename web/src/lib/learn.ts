// What each panel shows, in two sentences, and what good and bad look like. Keyed by the id of the
// panel's section; a new panel adds its text here or in lessons/, and its section gets the button
// for it.

import type { Lesson } from "./lessons/lesson";
import { matrixLessons } from "./lessons/matrix";
import { pageLessons } from "./lessons/pages";
import { tableLessons } from "./lessons/tables";

const rss =
  "Resident set size: the pages of a process that are in memory now. " +
  "Pages that processes share count in each.";
const pss =
  "Proportional set size: as RSS, but a shared page is divided by the number of its users.";
const reserved =
  "What the framework's caching allocator got from the device. " +
  "Part of it is free for the next tensors.";
const allocated = "What tensors hold now. The difference to reserved is cache.";

const lessons: Record<string, Lesson> = {
  ...pageLessons,
  ...matrixLessons,
  ...tableLessons,
  findings: {
    is:
      "What the recording shows to be wrong, worst first, each with its line and what to " +
      "change. A finding has passed a test against noise; its confidence says how surely.",
    good: "No finding, or hints alone.",
    bad: "A leak: memory that is kept and grows with each step, until the job is killed.",
    terms: {
      site: "The line that allocates.",
      holder: "The container that keeps what was allocated alive.",
    },
  },
  timeline: {
    is:
      "Memory and everything else that was recorded, on one axis of time, " +
      "with phases and steps as lanes. A dashed line is a limit; " +
      "what only counts up is shown as its rate per second.",
    good:
      "A saw-tooth that returns to the same floor in each step, a device in use all the time, " +
      "few major faults.",
    bad:
      "A floor that rises with the steps, or a curve that nears its limit. Major faults: " +
      "memory is read back from disk. A device that idles while one processor is full waits " +
      "for data.",
    terms: {
      RSS: rss,
      PSS: pss,
      allocated,
      reserved,
      "major fault": "A page that had to be read from disk.",
      "minor fault": "A page that was in memory already, or is new.",
    },
  },
  output: {
    is:
      "What the program wrote to its terminal, in its colours, which are darkened or lightened " +
      "where they could not be read. A progress bar shows what it showed last.",
    good: "Losses that fall, a bar that moves.",
    bad: "A warning or a traceback: search for Error.",
    terms: {
      row:
        "A line of a screen without end. What a bar writes over is gone from here, " +
        "not from the download.",
    },
  },
  ranks: {
    is:
      "The processes of a distributed job beside each other. " +
      "Ranks wait for each other in their collectives, so the slowest decides the speed of " +
      "all. When one fails, the others fail after it.",
    good: "Bars of one height.",
    bad:
      "One bar far above the dashed line, or a rank that failed before the others: " +
      "its own log tells why.",
    terms: {
      "own work": "Data and forward of a step, in which no other rank is waited for.",
      waiting:
        "The rest of the step, beyond that of the rank that spends least there: an estimate.",
      loading: "The highest resident memory up to the end of the first step.",
    },
  },
  growth: {
    is:
      "Memory at the end of each optimizer step, where what a step needs is freed again. " +
      "The line is a least-squares fit after the warm-up.",
    good: "Level points.",
    bad: "Points along a rising line: each step keeps something.",
  },
  peak: {
    is:
      "What the largest process held when memory was highest, in one bar. " +
      "The rest is memory that no allocation accounts for, such as code and libraries.",
    good: "Parameters, gradients and optimizer state lead.",
    bad: "Allocations of lines that only log or load data, or a large rest.",
  },
  capacity: {
    is:
      "The imaginary GPU at its peak: what took its memory and what was left. " +
      "What is reserved but not allocated is the allocator's cache and fragmentation.",
    good: "Free memory above the uncertainty of the figures.",
    bad: "Reserved far above allocated: other allocator settings may make it fit.",
    terms: { allocated, reserved },
  },
  change: {
    is:
      "What each line, module or category added to the peak (right) or took from it (left). " +
      "The bars add up to the difference of the peaks.",
    good: "Bars only where you changed something.",
    bad: "A large bar at a line that nobody meant to change.",
  },
  course: {
    is:
      "Device memory after each event of the allocator, in bands that add up. " +
      "An event is one allocation or one free, so the axis is not a clock.",
    good: "Bands that return to the same height in each step.",
    bad: "A band that is higher after each step.",
  },
  flames: {
    is:
      "Who holds the memory, as calls: each bar is a call, as wide as what it and its callees " +
      "hold. Read down from the whole program to the line that allocates.",
    good: "Wide bars where the model's own layers are.",
    bad: "A wide bar that ends in a line of logging, evaluation or data loading.",
  },
  "heap-flames": {
    is:
      "Who holds the heap of a process, as calls: " +
      "each bar is a call, as wide as what it and its callees hold; " +
      "the figures are those of a sample. It shows the peak, what was still held at the end, " +
      "and what was allocated and freed again.",
    good:
      "At the end only what the program needs to its end. " +
      "Little is freed again, compared with what is held.",
    bad:
      "A line that is wide at the end and should have freed its memory: " +
      "a cache without a limit. A line that frees again many times what it holds: " +
      "reuse its buffer.",
    terms: {
      "freed again": "What a call allocated in the whole run, less what it held at the end.",
      "at the end": "At the last reading before the interpreter began to end, where it frees all.",
    },
  },
  explorer: {
    is:
      "Every block of the trace, stacked: events to the right, bytes upwards. " +
      "A block lies on those that are older, and falls when one of these is freed. " +
      "The line above is what the allocator had reserved.",
    good: "The stack falls back to the same height after each step.",
    bad: "Blocks that begin in each step and never end, or a reserved line far above the stack.",
    terms: { reserved, allocated, age: "For how many events of the trace a block was allocated." },
  },
  "explorer-cached": {
    is:
      "What the allocator held over the window: " +
      "in use, cached beside blocks in use, and cached in segments with nothing in them. " +
      "The grey stretch is the life of the chosen block; after a free is requested, " +
      "another stream may still use it.",
    good: "Little cached at the peak: what is reserved is used.",
    bad:
      "Much cached beside blocks in use: no other program can have it, " +
      "and large requests may not fit. That is fragmentation.",
    terms: {
      "inactive split": "A cached part of a segment of which another part is in use.",
      reserved,
    },
  },
  "explorer-flames": {
    is:
      "Who allocated what is shown, as calls: " +
      "each bar is a call, as wide as what it and its callees have. " +
      "By who allocates, the innermost call comes first; one function shows its callers above " +
      "and its callees below.",
    good: "Wide bars where the model's own layers are.",
    bad:
      "A wide bar of a line that should have freed its memory by then, " +
      "such as logging or evaluation.",
    terms: {
      "call order": "Calls stand in the order of their first blocks.",
      folded: "A run of C++ calls is one bar until it is clicked.",
    },
  },
  segments: {
    is:
      "The allocator's segments by address: pieces it got from the device, cut into blocks. " +
      "Grey is cached: reserved, and in no tensor.",
    good: "Full segments.",
    bad:
      "Small blocks in many nearly empty segments: " +
      "they cannot be given back, which is fragmentation.",
    terms: { reserved, allocated },
  },
  "table-sites": {
    is:
      "The lines that held the heap when it was highest: " +
      "sampled or, by tracemalloc, Python's alone. " +
      "Areas are as large as the bytes; an error is the half width of the 95 % interval.",
    good: "Lines of the model and the data that a step needs.",
    bad: "A line that holds more than the batch it works on.",
  },
  "table-phases": {
    is:
      "Each phase of training: how often, how long, and the highest memory in it. " +
      "Rise is peak less memory at its begin; net is what a pass kept, on average.",
    good: "Net near zero: a phase gives back what it takes.",
    bad: "Net as large as the growth of the run: this phase keeps memory.",
  },
  "table-modules": {
    is:
      "The direct children of the model: their parameters and what their forward takes. " +
      "Net is what stayed after forward, which backward frees.",
    good: "Parameters and rise that fit the sizes of the layers.",
    bad: "One module whose rise is most of the peak: a candidate for checkpointing.",
  },
  "table-growth": {
    is:
      "Lines whose memory grows with the steps, with the bytes that each step adds and keeps. " +
      "The error is the half width of the 95 % interval.",
    good: "No line, or errors as large as the figure.",
    bad: "A line that keeps most of what it allocates, in every step.",
  },
  "table-processes": {
    is: "Every process of the run with its highest memory, processor time and how it ended.",
    good: "Workers alike, exit 0.",
    bad: "A worker far above its siblings, or one ended by a signal.",
  },
  "table-ranks": {
    is:
      "The ranks of a distributed job in figures. " +
      "Work is data and forward, in which no other rank is waited for.",
    good: "Rows alike.",
    bad: "One row that differs by more than a tenth.",
  },
  "table-shapes": {
    is:
      "The pattern of each curve while the program worked: " +
      "steady, warm-up, saw-tooth, spikes, steady growth, staircase, or insufficient cleanup, " +
      "which falls again but not to where it began.",
    good: "Steady, or a saw-tooth.",
    bad: "Steady growth, insufficient cleanup, spikes.",
  },
  "table-efficiency": {
    is: "The parts of the run's score from 0 to 10, each with what it rests on.",
    good: "Near 10.",
    bad: "A part below 5: its text says why.",
  },
};

/** The text of a panel; a table's id may end with the file or device it is of. */
export const lessonOf = (id: string): Lesson | undefined =>
  lessons[id] ?? lessons[id.split("-").slice(0, 2).join("-")];
