// The lessons of tables, by "table-" and the table's name. Those of the usual recording stand in
// learn.ts.

import type { Lesson } from "./lesson";

const stuck =
  "Cached pieces in a segment that also has a block in use: " +
  "the segment cannot be given back, and only a request that fits a piece can use it. " +
  "PyTorch calls them inactive split.";

export const tableLessons: Record<string, Lesson> = {
  "table-levels": {
    is:
      "The allocator's four levels at the peak, at the end and where else they matter. " +
      "Requested is what the program asked for, allocated adds rounding, " +
      "active adds blocks that wait for a stream, reserved adds the cache.",
    good: "Four figures close together.",
    bad: "Reserved far above active: cache and fragmentation.",
  },
  "table-blame": {
    is:
      "Who holds the memory at the moment of the table, by line, module or category, " +
      "in whole blocks. Share is of what was allocated then.",
    good: "Parameters, gradients and optimizer state of the model's own lines.",
    bad: "Lines of logging, evaluation or data loading near the top.",
  },
  "table-reserved": {
    is:
      "What the reserved memory is at this moment: " +
      "asked for, lost to rounding, waiting for a stream, or cached. " +
      "Only what is cached in whole free segments can be given back.",
    good: "Nearly all is asked for.",
    bad:
      "Much is cached beside blocks in use: " +
      "other allocator settings may help, and What if tries them.",
    terms: { "cached beside blocks in use": stuck },
  },
  "table-pins": {
    is:
      "The lines whose blocks keep segments alive that are at most a quarter full. " +
      "Each segment counts for its largest block.",
    good: "No row, or small figures.",
    bad: "A long-lived small block that keeps a large segment.",
    terms: { segment: "A piece that the allocator got from the device, cut into blocks." },
  },
  "table-classes": {
    is:
      "Cached pieces beside blocks in use, by their size. " +
      "A request uses one of them only if it fits.",
    good: "Few bytes, in large pieces.",
    bad: "Many bytes in pieces smaller than what the program asks for.",
    terms: { "inactive split": stuck },
  },
  "table-rounding": {
    is:
      "Bytes lost because the allocator rounds each request up, by line. " +
      "PyTorch rounds to 512 bytes, and to more where it is set so.",
    good: "A small part of what is allocated.",
    bad: "Many tiny blocks from one line, each rounded up.",
  },
  "table-turnover": {
    is:
      "What comes and goes: bytes that each line allocated and freed again, " +
      "and what it held on average. High turnover costs time and invites fragmentation.",
    good: "Activations of the model's own lines.",
    bad: "A line that allocates and frees large buffers in each step, which could be kept.",
  },
  "table-start": {
    is:
      "Blocks that were there before the trace began and are there at its end, by line. " +
      "Of some no stack is known, because they are older than the record.",
    good: "Parameters and optimizer state.",
    bad: "Large blocks that no part of the training should keep.",
  },
  "table-longest": {
    is:
      "Blocks with the largest product of bytes and life. " +
      "An hour of one GiB counts as two hours of half a GiB.",
    good: "Parameters and optimizer state lead.",
    bad: "An activation or a temporary that outlives its step.",
  },
  "table-device": {
    is:
      "The lines that held the device when the snapshot was taken. " +
      "The note above says how much more the allocator had reserved.",
    good: "Lines of the model.",
    bad: "A line that should have freed its memory by then.",
  },
  "table-devices": {
    is:
      "Each device with the peaks of every framework's allocator, and of all processes. " +
      "What is used but not reserved is taken by contexts and libraries.",
    good: "Reserved near allocated, no retries.",
    bad: "Retries: the cache was emptied for lack of memory, which is slow.",
    terms: {
      retries: "How often the allocator freed its cache and asked the device again.",
      "unusable gaps": stuck,
    },
  },
  "table-programs": {
    is:
      "What compiled functions need at once, as XLA's compiler says: " +
      "arguments, outputs, temporaries. Outputs that lie in donated arguments are not counted " +
      "twice.",
    good: "Outputs in donated arguments where the old value is not needed again.",
    bad: "Temporaries larger than the arguments.",
    terms: { donated: "An argument whose memory the function may use for its outputs." },
  },
  "table-tracings": {
    is:
      "Functions that were traced again and again, with what was different the last time. " +
      "Each trace keeps a graph or a program.",
    good: "No row: each function is traced once.",
    bad: "A function traced in each step: a shape or a Python value changes.",
  },
  "table-arrays": {
    is:
      "Arrays that were alive at one moment, by the line that made them, " +
      "as the framework's own profile has it.",
    good: "Parameters and the batch.",
    bad: "Arrays of earlier steps.",
  },
  "table-mappings": {
    is:
      "What is resident in a process by mapping: heap, stacks, libraries, shared memory. " +
      "PSS divides shared pages among their users.",
    good: "Libraries are shared.",
    bad: "Large private, written memory of a file that was only meant to be read.",
  },
  "table-categories": {
    is: "What the peak was made of by purpose. Categories are of the moment of their own peak.",
    good: "Parameters, gradients and optimizer state in the sizes you expect.",
    bad: "Activations far above all else: a smaller batch or checkpointing takes them down.",
  },
  "table-gpus": {
    is:
      "The verdict on every GPU of the catalogue, the cheapest that fits first. " +
      "The program ran on one; the others follow from what it reserved.",
    good: "Fits, with headroom.",
    bad: "Out of memory, or tight: less room than the figures are sure of.",
  },
  "table-imagined": {
    is:
      "The imaginary GPU's memory part by part, up to the peak in use and what is left. " +
      "Parts beside the allocator are estimates of the catalogue.",
    good: "Headroom above the uncertainty.",
    bad: "Reserved far above allocated.",
  },
  "table-tries": {
    is:
      "What was tried to make the program fit, each run on the imaginary GPU. " +
      "The command of a row repeats it.",
    good: "A change that costs little time and fits.",
    bad: "None fits: a larger GPU or a smaller model is needed.",
  },
  "table-variations": {
    is:
      "The same program with one condition changed at a time. " +
      "It says how far the verdict rests on that condition.",
    good: "Rows alike.",
    bad: "A condition that changes the verdict.",
  },
  "table-peak-lines": {
    is: "The lines that held the peak on the imaginary GPU, in whole blocks.",
    good: "Lines of the model and its optimizer.",
    bad: "A line that keeps what an earlier step made.",
  },
  "table-peak-modules": {
    is: "The Python modules whose lines held the peak of an LLM server on the imaginary GPU.",
    good: "The module that allocates the KV cache, then those of the weights.",
    bad: "A module that you did not ask for, such as that of adapters.",
  },
  "table-serving": {
    is: "What the engine says of its start: bytes of one GPU, tokens and sequences.",
    good: "Most of the memory is KV cache.",
    bad: "Weights or activations that leave little for it.",
  },
  "table-diff": {
    is: "What each part held before and after, the largest change first.",
    good: "Changes only where you made one.",
    bad: "A part that grew without a change.",
  },
  "table-fit": {
    is: "Each trial of the search: its batch, whether it fitted, and what it took.",
    good: "Memory in proportion to the batch.",
    bad: "A jump between two batches: another algorithm was chosen.",
  },
  "table-replay": {
    is: "The same requests under other settings of the allocator, by figure.",
    good: "Lower reserved, the same allocated.",
    bad: "More calls of the driver or more retries.",
  },
  "table-faults": {
    is:
      "Page faults and swap of each process: " +
      "pages that came anew, pages read from disk, memory that was moved out. " +
      "A major fault waits for the disk.",
    good: "Minor faults alone.",
    bad: "Major faults or swap while training: the machine has too little memory.",
    terms: {
      "minor fault": "A page that was in memory already, or is new.",
      "major fault": "A page that had to be read from disk.",
      swap: "Memory moved to disk to make room.",
    },
  },
  notes: {
    is:
      "What was not observed and why, and how the figures that are here were made. " +
      "What is not known is said to be not known.",
    good: "Notes on methods alone.",
    bad: "A counter or a process that could not be read: figures without it may be too low.",
  },
};
