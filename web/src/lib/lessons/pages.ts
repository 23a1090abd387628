// The lessons of the live pages: lists, forms, what if, differences.

import type { Lesson } from "./lesson";

const peak = "The most memory that was held at one moment.",
  headroom = "What is left of the device's memory at the peak.";
const reserved =
  "What the caching allocator got from the device. Part of it may be free for the next tensors.";

export const pageLessons: Record<string, Lesson> = {
  comments: {
    is:
      "What people say of the run, of a moment of it or of a finding. " +
      "A comment on a moment leads to it.",
    good: "The cause, and what was changed for it, so that nobody has to find it twice.",
    bad: "A finding that several people met, and no word of what became of it.",
  },
  runs: {
    is:
      "Every recording on this machine, the newest first; those that are recorded now follow " +
      "by themselves. The peak is the device's where one was used, else the host's.",
    good: "Runs that end with exit 0, and peaks that stay alike from run to run.",
    bad: "Out of memory, or the same command with a higher peak than before.",
    terms: {
      peak,
      findings: "What the recording shows to be wrong, such as a leak.",
      "cut off": "The recorder was stopped before the program; everything up to then is there.",
    },
  },
  upload: {
    is:
      "The way to look at a file: a snapshot of PyTorch's allocator, a recording, " +
      "a profiler's trace. It goes to this server alone, is read within limits by a process of " +
      "its own, and is deleted when the server ends.",
    good: "A file as its program left it.",
    bad:
      "A file that was cut off, or comes from somebody you do not trust: " +
      "the page says what is wrong with it, and nothing in it is run.",
  },
  recorded: {
    is:
      "Snapshots that runs keep in their recordings, the newest run first. " +
      "Figures of small ones are read at once, those of others when they are opened.",
    good: "One at the end of a run, or where memory ran out.",
    bad:
      "None of a run that you want to explain: " +
      "hightide run --snapshot-on oom,exit keeps one at its end.",
  },
  snapshots: {
    is:
      "Snapshots of PyTorch's allocator that this server has open: " +
      "blocks with their stacks, and the trace of allocations where one was recorded. " +
      "Each opens as an explorer.",
    good: "A snapshot with events: then every block has a beginning and an end.",
    bad:
      "No events: only what was held at the end is known. " +
      "torch.cuda.memory._record_memory_history begins a trace.",
    terms: {
      event: "One allocation or one free.",
      block: "A piece of device memory that one tensor or workspace has.",
      peak,
    },
  },
  plan: {
    is:
      "A model by its files: a folder or file where the server was started, a name of the " +
      "Hugging Face hub, or files that are dropped here. Nothing is run: it is arithmetic over " +
      "the headers of the files.",
    good: "The files of the weights: their bytes are exact.",
    bad: "A configuration alone of a kind that hightide does not know.",
    terms: {
      users: "Sequences that a server holds at once, each of so many tokens.",
      cache: "Keys and values of all tokens, which a server keeps for each sequence.",
    },
  },
  "plan-answer": {
    is:
      "The GPU with the lowest known price on which it fits at the upper ends of all estimates, " +
      "and what would let a cheaper one do. Each proposal was computed as the answer was.",
    good: "Gigabytes that are left at least.",
    bad: "No GPU: fewer users, a shorter sequence or smaller types are then proposed.",
  },
  "plan-gpus": {
    is:
      "Every GPU of the catalogue that was looked at, those that fit first, the cheapest first. " +
      "The line over a bar goes from what is sure to what would be at best.",
    good: "fits: at the upper ends of all estimates.",
    bad: "no: not even at their lower ends, or the GPU cannot run it, as the note says.",
    terms: {
      likely: "At the estimates themselves, not at their upper ends.",
      unlikely: "Only below the estimates.",
      left: "What remains of the memory that may be taken, on each GPU.",
      exact: "Read from the files.",
      computed: "From fields of the configuration.",
      estimated: "Between two other figures, for the reason that stands beside it.",
    },
  },
  explorer: {
    is:
      "Every block of the trace as an area: " +
      "as wide as its life in events, as high as its bytes, stacked on the blocks that live " +
      "beside it. The segments below are those after the chosen event.",
    good:
      "Areas of one step that end before the next begins, above a level floor of parameters " +
      "and optimizer state.",
    bad: "Areas that begin in each step and never end: their stack is the line that keeps them.",
    terms: {
      event: "One allocation or one free; the axis is not a clock.",
      segment: "A piece that the allocator got from the device, cut into blocks.",
      cached: "Reserved, but in no tensor.",
    },
  },
  whatif: {
    is:
      "The recorded requests run again through a model of PyTorch's caching allocator, " +
      "under settings or on a GPU that you choose. " +
      "The program itself does not run again, so what it would do differently is not seen.",
    good: "A replayed curve that is lower, and closer to what tensors hold.",
    bad: "A line out of memory, or the cache emptied often: each time costs calls of the driver.",
    terms: {
      reserved,
      "in use": "What tensors hold.",
      fragmentation: "Reserved memory in pieces too small or too scattered to be used again.",
    },
  },
  imagine: {
    is:
      "A program runs here unmodified while an imaginary GPU answers its calls: " +
      "memory is accounted for, no kernel runs. The form makes the command line below it.",
    good: "The line you would type on the machine with the GPU.",
    bad:
      "A program that needs real results to go on: " +
      "figures then rest on numbers that only a GPU would compute, " +
      "and the verdict says at which lines.",
  },
  catalogue: {
    is:
      "GPUs with their memory, what an hour costs to rent, and what that is per GiB. " +
      "Once something ran, each has its headroom: " +
      "imagined where it was tried, else estimated from what the program reserved.",
    good: "The cheapest GPU that fits with room.",
    bad: "Tight: what is left is less than the figures are sure of.",
    terms: {
      headroom,
      context: "What a process takes of a GPU before its first tensor: driver and libraries.",
    },
  },
  fit: {
    is:
      "The largest batch of a model or a command is searched by trials, " +
      "each an imagined run with one batch. Write {batch} where the batch goes.",
    good: "Batches that are multiples of what the hardware likes, such as 8.",
    bad: "A command that ignores its batch: then memory does not change, and the trials say so.",
    terms: {
      "gradient accumulation":
        "Several small batches before one optimizer step, for the same effect as a large one.",
    },
  },
  tune: {
    is:
      "A training runs on imaginary GPUs, as it is and with changes that hightide makes in it: " +
      "blocks that are computed again, activations on the host, another way to step the " +
      "optimizer. Each point of the chart is a plan of such changes that was run whole.",
    good: "A plan that reaches the goal and computes little again, with the same losses.",
    bad: "No plan fits: the sentence then says the smallest peak that was reached.",
    terms: {
      "computed again":
        "The share of the forward pass that runs a second time in the backward pass.",
      frontier: "Plans than which no other takes less at no more cost.",
    },
  },
  job: {
    is:
      "What was asked for: how far it is, what it tells, its result. " +
      "It goes on when you leave this page, and ends with the server.",
    good: "Trials that fit until one does not, or a verdict with its basis.",
    bad: "Failed: what the program wrote is below, its last lines first to read.",
  },
  jobs: {
    is:
      "Everything this server was asked to run since it began, with its state. " +
      "What jobs recorded stays in the list of runs when the server ends.",
    good: "Done.",
    bad: "Failed: the job's page shows why.",
  },
  matrices: {
    is:
      "Measurements of every combination of frameworks, models, batches and devices, " +
      "each repeated. One that is measured now says so, here or in another terminal.",
    good: "All cells done.",
    bad:
      "Fewer cells done than there are, and nothing that measures: " +
      "the same command goes on where it stopped.",
    terms: { cell: "One combination of the axes.", trial: "One run of a cell." },
  },
  bench: {
    is:
      "A form for a matrix: axes whose combinations are the cells, " +
      "and how often each is repeated. Trials run in random order, " +
      "so that a slow hour of the machine does not fall on one cell.",
    good: "Repeats until the interval is as narrow as you need, one trial at a time.",
    bad: "Several trials at once: their times disturb each other.",
  },
  difference: {
    is:
      "Two runs beside each other: their peaks, and what the difference is made of. " +
      "The waterfall begins at the earlier peak and ends at the later one.",
    good: "Bars only where you changed something.",
    bad: "A large bar where nothing was meant to change.",
    terms: { peak, waterfall: "Bars that each begin where the one before ended." },
  },
  bothcourses: {
    is:
      "One curve of both over each other: by time since each began, by optimizer step, " +
      "or by event of the allocator. The dashed grey line is the one before.",
    good: "The same shape, lower.",
    bad: "The later curve rises where the earlier one is level.",
  },
  flamediff: {
    is:
      "Calls as bars, as wide as what they hold in the later run; " +
      "colour says whether that is more or less than in the earlier one. " +
      "Read down from the whole program to the line that allocates.",
    good: "Colour only below what you changed.",
    bad: "A call that grew without a change there.",
  },
  difftable: {
    is:
      "The same difference as a table: what each part held before and after. " +
      "A part that only one run has is new or gone.",
    good: "Changes near zero where nothing was meant to change.",
    bad: "A part that holds much more than before.",
  },
  waterfall: {
    is:
      "From one peak to the other: each bar is what a part added or took away. " +
      "The bars add up to the difference of the peaks.",
    good: "Bars only where you changed something.",
    bad: "A large bar at a part that nobody meant to change.",
    terms: { waterfall: "Bars that each begin where the one before ended." },
  },
};
