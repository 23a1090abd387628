// The API's types, made from docs/openapi.json. To change one, change the Go type, then run make
// build, scripts/openapi.py and scripts/webtypes.py. Bytes and nanoseconds are integers; a key that
// is missing was not observed.

export interface Account {
  /** When it was closed; absent: it is open. */
  closed?: string;
  /** When it was made, or the password was set last. */
  made: string;
  /** Its name. */
  name: string;
}

export interface Accumulation {
  /** How many passes make an optimizer step. */
  accumulation_steps: number;
  /** Their product: at least the target, where it does not divide evenly. */
  effective_batch: number;
  /** The batch of one pass. */
  micro_batch: number;
  /** The batch asked for. */
  target_batch: number;
}

export interface Accuracy {
  /** For how many of them the stack alone tells the same. */
  agreed_blocks: number;
  /** Bytes of these for which the stack alone tells the same category. */
  agreed_bytes: number;
  /** The same by category. */
  by: CategoryAccuracy[];
  /** How many blocks those are whose owner the program told. */
  owned_blocks: number;
  /** Bytes of blocks whose owner the program told. */
  owned_bytes: number;
}

export interface Act {
  /** The address of the client, or where a command ran. */
  from: string;
  /** Its number in the log. */
  id: number;
  /** The status of the answer; absent: there was none yet. */
  status?: number;
  /** When it was. */
  time: string;
  /** The request, without its query and body, or what it began. */
  what: string;
  /** A key, a session, or the token of the server; nobody: who was not known. */
  who: string;
}

export interface ActList {
  /** What was done or refused, the newest first. */
  acts: Act[];
  /** There may be more: ask again with before=next. */
  next?: number;
}

export interface Advice {
  /** Bytes that were asked for. */
  asked_bytes: number;
  /** Bytes that the allocator had on the device then. */
  capacity_bytes: number;
  /** The event of the request. */
  event: number;
  /** Whether the model places every block where the record has it. */
  exact: boolean;
  /** Whether no setting can do. */
  hopeless: boolean;
  /**
   * Where none can: bytes by which what is in use, in one piece, and the request are more than
   * there are.
   */
  lacking_bytes?: number;
  /**
   * Whether the device had room: a memory limit was set, of which capacity_bytes is the lower
   * bound.
   */
  memory_limit: boolean;
  /** The least capacity that serves the request under the recorded settings, in bytes. */
  needed_bytes: number;
  /** Whether it runs out of memory at this very event under the recorded settings. */
  reproduced: boolean;
  /** The settings that were tried, those that avoid it first, the simplest first. */
  tries: AdviceTry[];
}

export interface AdviceTry {
  /** The settings, as PYTORCH_CUDA_ALLOC_CONF has them. */
  alloc_conf: string;
  /** How often the cache had to be emptied first. */
  alloc_retries: number;
  /** Whether they avoid it, in every order in which addresses may turn out. */
  avoids: boolean;
  /** Whether they avoid it in some of those orders only. */
  depends_on_addresses?: boolean;
  /** Bytes reserved at most, up to the request. */
  peak_reserved_bytes: number;
  /** How often the device was asked for segments or given them back. */
  segment_calls: number;
}

export interface Agreement {
  /** Choices between equal blocks whose segments are of an age that the trace does not hold. */
  addresses_ambiguous: number;
  /** How many lie where the record has them. */
  addresses_exact: number;
  /** Of these, those that were not as assumed; they count as exact. */
  addresses_realigned: number;
  /** How many allocations there are. */
  addresses_total: number;
  /** The first difference, for people. */
  first_mismatch?: string;
  /** How many are as recorded. */
  segments_exact: number;
  /** How many calls for segments there are. */
  segments_total: number;
}

export interface Allocator {
  /** The moment explained. */
  at: TracePeak;
  /**
   * Who holds the memory at the moment explained, largest first; null: left out, as a page shows
   * none.
   */
  blame: Blame[] | null;
  /** What blame is grouped by. */
  by: string;
  /** How well stacks tell categories, where the program told the owners of blocks. */
  category_accuracy?: Accuracy;
  /** The course over the trace, thinned; null: left out, as a page shows none. */
  curve: CurvePoint[] | null;
  /** The number of the device in the file. */
  device: number;
  /** How many events the trace of the device has. */
  events: number;
  /** The file. */
  file: string;
  /** The expression that blocks of the moment explained were to match. */
  filter?: string;
  /** The number of the first event explained. */
  first_event: number;
  /** What the segments are made of at the moment explained. */
  fragmentation?: Fragmentation;
  /** Sites that grow, largest first; null: left out, as a page shows none. */
  growth: TraceGrowth[] | null;
  /** The highest of each figure, each at its own moment. */
  highest: Levels;
  /**
   * Bytes cached at the end in segments that are in use elsewhere; absent where the file knows
   * blocks alone.
   */
  inactive_split_bytes?: number;
  /** How many events contradict those before them. */
  inconsistent_events: number;
  /** Where the figures come from. */
  label: Label;
  /** The number of the last event explained. */
  last_event: number;
  /** Blocks that lived longest for their size; null: left out, as a page shows none. */
  longest_lives: LongLife[] | null;
  /** Names of the categories that blocks of the map have by number. */
  map_categories?: string[];
  /** How many blocks match it. */
  matching_blocks?: number;
  /** Bytes of the blocks that match it. */
  matching_bytes?: number;
  /** What the device is called: device 0, or what it is where it is not a GPU. */
  name: string;
  /** The last request that found no memory; absent: there is none. */
  oom?: TraceOOM;
  /** The number of its event. */
  oom_event?: number;
  /** The moment at which most was allocated. */
  peak: TracePeak;
  /**
   * Blocks that keep mostly empty segments at the moment explained, most first; absent where the
   * file knows blocks alone.
   */
  pins?: Pin[];
  /**
   * At the moment explained: bytes allocated less bytes requested; absent where the file knows
   * blocks alone.
   */
  rounding_bytes?: number;
  /** The segments at the moment explained, by address; absent where the file knows blocks alone. */
  segment_map?: SegmentMap[];
  /** How many segments there are at the end; absent where the file knows blocks alone. */
  segments?: number;
  /** The settings of the allocator as the file has them, by their names. */
  settings?: Record<string, string>;
  /** How many distinct stacks the file has. */
  stacks: number;
  /** The steps and phases of the trace; absent: none are seen. */
  steps?: Steps;
  /** What was held over the trace by category and by site. */
  timeline?: TraceTimeline;
  /** The same, with its file where there are several. */
  title: string;
  /**
   * What was allocated and freed again by site, most first; null: left out, as a page shows none.
   */
  turnover: Turnover[] | null;
  /**
   * How many allocations count with their rounded size, as the place of their block is not known.
   */
  unplaced_events: number;
}

export interface Alternative {
  /** What to change of the command, as --kv-dtype fp8. */
  flags: string;
  /** The GPU, or the machine, on which it fits. */
  gpu: string;
  /** Of all GPUs together in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** What is left then. */
  room: Estimate;
  /** The same in words. */
  says: string;
}

export interface Artifacts {
  /** Files that were kept with the run. */
  artifacts: Attachment[];
}

export interface Attachment {
  /** The name of the file. */
  name: string;
  /** Its size in bytes. */
  size_bytes: number;
}

export interface Axis {
  /** How each value is shown; absent: as given. */
  labels?: string[];
  /** The name of the axis. */
  name: string;
  /** Its values as given, in that order. */
  values: string[];
}

export interface BackwardCheck {
  /** The batch that was run. */
  batch: number;
  /** The peak of the forward pass alone, in bytes. */
  forward_peak_allocated_bytes?: number;
  /** The peak of both passes, in bytes. */
  peak_allocated_bytes?: number;
}

export interface Band {
  /** What it held at each of the moments, in bytes. */
  bytes: number[];
  /** The group. */
  name: string;
}

export interface BeginInputBody {
  /** Its size in bytes. */
  size_bytes: number;
}

export interface Begun {
  /** The size of a part; the last one has the rest. */
  part_bytes: number;
  /** Those that were sent. One whose hash is another is sent again. */
  parts: Part[];
  /** What the server calls the run. */
  run: string;
  /** The project has the run already: nothing need be sent. */
  there_already?: boolean;
}

/** Options of the kind bench: measure a matrix, or go on with one. */
export interface BenchOptions {
  /** measure everything again */
  again?: boolean;
  /**
   * at most this number of trials at once, as memory allows; times are then not comparable (default
   * 1; of a cluster 200)
   */
  jobs?: number;
  /** name of the matrix (default that of the file) */
  name?: string;
  /** only cells with this axis=value, or axis=value,value; may be given several times */
  only?: string[];
  /** exactly this number of trials of each cell (default as the file says) */
  repeats?: number;
  /** YAML: axes, whose combinations are the cells; hightide about bench has every key */
  spec?: string;
  /** of each trial, as in 90s or 5m (default as the file says) */
  timeout?: string;
}

export interface BenchSummary {
  /** How many cells are in each state. */
  cells_by_state: unknown;
  /** The name of the matrix. */
  matrix: string;
  /** What else is to be known, for people. */
  notes?: string[];
  /** How many trials were made. */
  trials: number;
}

export interface Best {
  /** The allocator's settings, as PYTORCH_ALLOC_CONF has them. */
  alloc_conf: string;
  /** How often it emptied its cache because the device had no more. */
  alloc_retries: number;
  /** How much less is reserved than in the record, in bytes. */
  gain_bytes: number;
  /** How much less than by the default settings from a fresh start, in bytes. */
  gain_fresh_bytes: number;
  /** How many more calls of the driver that takes. */
  more_segment_calls: number;
  /** The number of the event that found no memory; null: none. */
  oom: number | null;
  /** What that asked for, in bytes. */
  oom_bytes?: number;
  /** Whether the memory would have been enough in one piece. */
  oom_fragmented?: boolean;
  /** The highest of what it gave, in bytes. */
  peak_allocated_bytes: number;
  /** The highest of what the allocator took from the device, in bytes. */
  peak_reserved_bytes: number;
  /** The lowest and highest peak, in bytes, as addresses turn out. */
  peak_reserved_spread_bytes: [number, number];
  /** The model of the allocator, where it is not PyTorch's native one. */
  policy_name?: string;
  /** How many requests found no memory, as in the record. */
  refused?: number;
  /** How often it asked the device for memory or gave some back. */
  segment_calls: number;
  /** Whether memory runs out with them. */
  verdict?: ReplayVerdict;
}

export interface Blame {
  /** How many blocks it has. */
  blocks: number;
  /** What its blocks hold, in bytes. */
  bytes: number;
  /** What its largest block is for. */
  category: string;
  /** The stack of its largest block, innermost first; null: not recorded. */
  frames: Location[] | null;
  /** The group: a line, a module, a category or what else was asked for. */
  name: string;
}

export interface Block {
  /** Where it begins, in hexadecimal. */
  address: string;
  /**
   * The point from which on it was allocated; 0: before the trace. A point is a number of events.
   */
  begin: number;
  /** When it was allocated, in ns since the first event. */
  begin_ns?: number;
  /** What it is for. */
  category: string;
  /** Which of the allocator's pools serves such a request. */
  class: string;
  /** The point from which on it was not; -1: it outlives the trace. */
  end: number;
  /** When it was freed, in ns since the first event. */
  end_ns?: number;
  /**
   * The calls of the forward pass that a block of the backward pass belongs to, innermost first.
   */
  forward: BlockFrame[];
  /** The calls that freed it, innermost first, where they differ from those that allocated it. */
  freed: BlockFrame[];
  /**
   * The stack that freed it: the same that allocated it, or another; absent: not recorded, or not
   * freed.
   */
  freed_by?: "same" | "other";
  /** The point from which on its memory could be used again; -1: it outlives the trace. */
  gone: number;
  /** The module of the model that allocated it. */
  module: string;
  /** The number of the block in the trace. */
  n: number;
  /** Where it lies in the stack of blocks at the point asked about, in bytes. */
  offset: number;
  /** Its name, as the program gave it. */
  owner?: string;
  /** The line that allocated it. */
  place: SiteLabel;
  /** What the program asked for, in bytes. */
  requested: number;
  /** The blocks of the same stack. */
  siblings: SiblingsOfBlock;
  /** The number of the line that allocated it, among the sites of the labels. */
  site: number;
  /** What the allocator gave, in bytes. */
  size: number;
  /** The calls that allocated it, innermost first. */
  stack: BlockFrame[];
  /** The stream that it belongs to. */
  stream: string;
  /** What the program attached to it. */
  texts: string[];
}

export interface BlockFrame {
  /** The file; of native code the library. */
  file: string;
  /** The function. */
  function?: string;
  /** The line, from 1; absent: not known. */
  line?: number;
  /** Whether it is native code, not Python. */
  native?: boolean;
  /** The number of the place, by which its source is asked for. */
  place: number;
  /** Whether it is the program's own, not an installed package's. */
  user?: boolean;
}

export interface Blocks {
  /** By column: the highest of what was allocated, in bytes. */
  allocated: number[];
  /** By column: what was allocated at its first point, which the blocks add up to, in bytes. */
  at: number[];
  /** The blocks that are drawn, in lists of one length. */
  blocks: Drawn;
  /** The first point. A point is a number of events. */
  from: number;
  /** Up to where in the stack of blocks, in bytes. */
  high: number;
  /** How many blocks were allocated at some point of the window. */
  inside: number;
  /** What the numbers of sites, categories, modules and streams stand for. */
  labels: Labels;
  /** From where in the stack of blocks on, in bytes. */
  low: number;
  /** By column: the highest of what was reserved, in bytes. */
  reserved: number[];
  /** How many points a column stands for. */
  step: number;
  /** The point after the last. */
  to: number;
  /** Bytes of one in an offset. */
  unit: number;
}

export interface Cache {
  /** Heads of keys and values. */
  heads?: number;
  /** Numbers of a key in a head. */
  key?: number;
  /** attention, window, latent or state. */
  kind: string;
  /** How many layers are of this kind. */
  layers: number;
  /** Numbers that a sequence takes in a layer, however long it is. */
  state?: number;
  /** Numbers of a value in a head. */
  value?: number;
  /** Tokens that are looked back on; absent: all. */
  window?: number;
}

export interface Cached {
  /** By column: bytes of blocks that are in use or wait for another stream. */
  active: number[];
  /** By column: bytes of segments with nothing in use. */
  free: number[];
  /** The first point. */
  from: number;
  /** Whether the file tells of segments; else there are no columns. */
  known: boolean;
  /** By column: the point at which most was cached, of which the other columns tell. */
  point: number[];
  /** By column: bytes of all segments. */
  reserved: number[];
  /** By column: bytes cached in segments that are in use elsewhere (inactive split). */
  split: number[];
  /** How many points a column stands for. */
  step: number;
  /** The point after the last. */
  to: number;
}

export interface Card {
  /** As nvidia:0. */
  device: string;
  /** What it has. */
  memory_bytes?: number;
  /** Its model. */
  name: string;
  /** What is taken of it, with what its driver takes. */
  used_bytes?: number;
  /** How busy it was in the driver's last sample. */
  utilisation_milli?: number;
}

export interface Category {
  /** How much of the peak that is, in bytes. */
  bytes: number;
  /** What the memory is for. */
  name: string;
}

export interface CategoryAccuracy {
  /** Bytes of those for which the stack alone tells the same. */
  agreed_bytes: number;
  /** What the blocks are for, as the program told. */
  category: string;
  /** Bytes of these blocks. */
  owned_bytes: number;
}

export type Cell = string | number | null;

export interface CellStats {
  /** How many of them are done. */
  done: number;
  /** Its figures, by name. */
  figures?: Record<string, Stat>;
  /** Its key. */
  key: string;
  /** Why none is. */
  reason?: string;
  /** The recordings of those. */
  runs?: string[];
  /** done where a trial is. */
  state: string;
  /** How many trials it has. */
  trials: number;
  /** A value of each axis. */
  values: string[];
}

export interface Change {
  /** The key of the cell. */
  cell: string;
  /** The figure. */
  figure: string;
  /** The 95 % interval of the ratio; absent: not known. */
  interval?: Interval;
  /** What there is. */
  is?: number;
  /** How much more is allowed, as a part. */
  limit: number;
  /** That over what was. */
  ratio?: number;
  /** The same in words. */
  sentence: string;
  /** worse, unknown, gone, better, same or new. */
  standing: string;
  /** What the baseline has. */
  was?: number;
}

export interface ChangeInputBody {
  /** A new name; empty: none. */
  name?: string;
  /** Tags to remove. */
  remove?: string[];
  /** Tags to set. */
  set?: Record<string, string>;
}

export interface Code {
  /**
   * Put behind #code= of an address of this server, within an hour: opens it in one browser, once.
   */
  code: string;
}

export interface Column {
  /** Where its figures come from. */
  label?: Label;
  /** Its name for programs. */
  name: string;
  /** Its title for people; empty: it is for programs alone. */
  title: string;
  /** The unit of its numbers; absent: it holds text. */
  unit?: Unit;
}

export interface CombinedStatus {
  /** The hash of the commit. */
  sha: string;
  /** Failure where one failed or broke, else pending where one is or there is none. */
  state: "success" | "failure" | "pending";
  /** By context. */
  statuses: CommitStatus[];
  /** How many checks there are. */
  total_count: number;
}

export interface Comment {
  /** The moment that it is about, in ns since the run began; absent: none. */
  at_ns?: number;
  /** The account that wrote it; of who had the database's password, USER on MACHINE. */
  by: string;
  /** The finding that it is about, by its kind and its line, as leak train.py:12; absent: none. */
  finding?: string;
  /** What requests call it. */
  id: string;
  /** When it was written, in ns since 1970. */
  made_wall_ns: number;
  /** What is said, as plain text. */
  text: string;
}

export interface CommentInputBody {
  /** The moment that it is about, in ns since the run began; absent: none. */
  at_ns?: number;
  /**
   * The finding that it is about: its kind, and its line where it has one, as leak train.py:12;
   * absent: none.
   */
  finding?: string;
  /** What is said, as plain text. */
  text: string;
}

export interface CommentLine {
  /** What it held. */
  bytes: number;
  /** The function that it is in. */
  function: string;
  /** As train.py:12. */
  name: string;
}

export interface CommentList {
  /** The oldest first. */
  comments: Comment[];
}

export interface Commit {
  /** The run of the commit before that is to be compared with first_run. */
  before_run?: string;
  /** How the mean differs from that of the commit before; absent: it is the first. */
  change_bytes?: number;
  /** The commit that was checked out where its runs began. */
  commit: string;
  /** Whether files differed from the commit: its runs are then no repeats of one another. */
  dirty?: boolean;
  /**
   * How far the figure that is known least well may be off to either side, in bytes; of 0, what was
   * not told; absent: exact, or not known.
   */
  error_bytes?: number;
  /** The id of its first run. */
  first_run: string;
  /** The highest. */
  highest_bytes: number;
  /** That of its last one. */
  last_run: string;
  /** The lowest of them. */
  lowest_bytes: number;
  /** The mean of the figures of its runs. */
  mean_bytes: number;
  /**
   * What a change has to exceed, or it may be noise; absent: no commit was run twice, or a figure
   * is only a bound.
   */
  noise_bytes?: number;
  /** How many runs it has. */
  runs: number;
  /** How checks of the commit ended, such as of its budgets; absent: none is known. */
  statuses?: CommitStatus[];
  /** On the change; absent: it is the first. */
  verdict?: "changed" | "within noise" | "unknown";
}

export interface CommitStatus {
  /** What was checked, as hightide. */
  context: string;
  /** Why, in one line; empty: not said. */
  description: string;
  /** The project of it. */
  project: string;
  /** How it ended. */
  state: "success" | "failure" | "error" | "pending";
  /** Where more is told; absent: nowhere. */
  target_url?: string;
  /** When it was said last. */
  updated_at: string;
}

export interface Compared {
  /** What was varied. */
  axes: Axis[];
  /** Its combinations. */
  cells: MatrixCell[];
  /** What it says. */
  comparison?: Comparison;
  /** How exactly each cell was to be known. */
  goal: Goal;
  /** Where they ran. */
  machines: Machine[];
  /** The name of the matrix. */
  name: string;
  /** The text of its file. */
  spec: string;
  /** When its first trial began, in ns since 1970. */
  start_wall_ns: number;
  /** Its trials, in the order in which they were kept. */
  trials: MatrixTrial[];
  /** The version of this form. */
  version: number;
}

export interface Comparison {
  /** Recommendations. */
  advice: MatrixAdvice[];
  /** What was varied. */
  axes: Axis[];
  /** What is known of each cell, in the order of the result. */
  cells: CellStats[];
  /** The same of cells on a device; empty: there are none. */
  device_figure: string;
  /** What explains the largest differences. */
  differences: Difference[];
  /** The figure that ratios and lines lead with, of cells on the host. */
  figure: string;
  /** What the figures are. */
  figures: FigureInfo[];
  /** Memory by batch. */
  fits: Fit[];
  /** Of every interval: 0.95. */
  level: number;
  /** The name of the matrix. */
  name: string;
  /** What is not known, and why. */
  notes: string[];
  /** How much more one value of an axis takes than another. */
  ratios: Ratio[];
  /** With a baseline: what became of each cell. */
  regression?: Regression;
  /** The version of this form. */
  version: number;
}

export interface Cost {
  /** Of which day it is. */
  date?: string;
  /** Whose price it is. */
  source: string;
  /** The price in USD an hour. */
  usd_per_hour: number;
  /** The price in USD of a million samples, where time was measured. */
  usd_per_million_samples?: number;
  /** The price in USD of a year of continuous use. */
  usd_per_year: number;
}

export interface Curve {
  /** As the driver or the framework calls it: nvidia:0, cuda:0. */
  device?: string;
  /** Which of the devices of the snapshot. */
  device_number?: number;
  /** How far y may be off, to either side, where that is known. */
  error?: number;
  /** Of a snapshot. */
  file?: string;
  /** Whose allocator it is. */
  framework?: string;
  /** Where the figures come from: measured, sampled, imagined, replayed, estimated. */
  label: Label;
  /** The newest reading. */
  last?: number;
  /** The quantity, as host.rss. */
  name: string;
  /** All that in words. */
  of?: string;
  /** Id in the run; absent: those of the whole run, or of the machine. */
  process?: number;
  /** Its number in the recording. */
  series: number;
  /** The quantity in words. */
  title: string;
  /** Of y: bytes, ns, count, ppm and so on. */
  unit: Unit;
  /** Rising. */
  x: number[];
  /** Of x: ns since the run began, or event of a trace. */
  x_unit: Unit;
  /** One for each x. */
  y: number[];
}

export interface CurveList {
  /** Up to where the recording was read, since the run began. */
  at_ns: number;
  /** The curves. */
  series: Curve[];
}

export interface CurvePoint {
  /** Bytes allocated. */
  allocated_bytes: number;
  /** The number of the event. */
  event: number;
  /** The most that empty_cache would have given back near it, in bytes. */
  releasable_bytes?: number;
  /** Bytes reserved; absent where the file does not tell. */
  reserved_bytes?: number;
  /** When, in ns since 1970; absent where the file has no times. */
  time_ns?: number;
}

export interface DeleteInputBody {
  /** Each as in the path of a run. */
  ids: string[];
}

export interface Deleted {
  /** The runs that were deleted. */
  ids: string[];
}

export interface Difference {
  /** In which the cells differ. */
  axis: string;
  /** The place of the other. */
  base: number;
  /** By how much the means differ, in bytes. */
  bytes: number;
  /** The place of the cell that needs more. */
  cell: number;
  /** The figure. */
  figure: string;
  /** What is not known. */
  note?: string;
  /** What both held at their peaks, largest difference first. */
  parts: MatrixPart[];
  /** How much all parts of one kind explain. */
  rest: DifferenceSum[];
}

export interface DifferenceSum {
  /** The kind of parts. */
  by: string;
  /** How much they explain, in bytes. */
  explained_bytes: number;
}

export interface Drawn {
  /** By block: the point from which on it was allocated. */
  begin: number[];
  /** By block: its size in bytes. */
  bytes: number[];
  /** By block: the number of its category among those of the labels. */
  category: number[];
  /** By block: the point from which on it was not; -1: it outlives the trace. */
  end: number[];
  /** Positions in these lists of blocks that the window asked for. */
  first?: number[];
  /** By block: the number of its module among those of the labels. */
  module: number[];
  /** By block: its number in the trace. */
  n: number[];
  /** By block: the number of the line that allocated it, among the sites of the labels. */
  site: number[];
  /**
   * For each block the number of its steps. Then for each of them the column, as difference to the
   * one before, and its offset in units above low, likewise. The first is where it is first drawn.
   */
  steps: number[];
  /** By block: the number of its stream among those of the labels. */
  stream: number[];
}

export interface EmptyCache {
  /** What it would give back at the end, in bytes. */
  end_bytes: number;
  /** The number of the event after which it would have given back most. */
  event: number;
  /** What it would have given back then, in bytes. */
  most_bytes: number;
  /** When that was, in ns since 1970; absent where the file has no times. */
  time_ns?: number;
}

export interface Ending {
  /** How it ended; of a run on imaginary GPUs, its verdict. */
  kind:
    | "running"
    | "cut off"
    | "done"
    | "stopped"
    | "oom"
    | "failed"
    | "unknown"
    | "fits"
    | "tight"
    | "conditional"
    | "no verdict";
  /** The same in a few words, as: exit 1, IndexError. */
  text: string;
}

export interface EnterInputBody {
  /** The code of an address that hightide ui printed: what stands behind #code=. */
  code?: string;
  /** In place of a code, the name of an account, where the server has accounts. */
  name?: string;
  /** Its password. */
  password?: string;
  /**
   * In place of a code, the secret of a link to one run: what stands behind #share= of an address.
   * It is good until the link ends.
   */
  share?: string;
}

export interface Entered {
  /**
   * The page's secret: what each request of the page carries as X-Hightide-Page, beside the cookie.
   */
  page: string;
}

export interface ErrorDetail {
  /** Where the error occurred, e.g. 'body.items[3].tags' or 'path.thing-id' */
  location?: string;
  /** Error message text */
  message?: string;
  /** The value at the given location */
  value?: unknown;
}

export interface ErrorModel {
  /** A human-readable explanation specific to this occurrence of the problem. */
  detail?: string;
  /** Optional list of individual error details */
  errors?: ErrorDetail[];
  /** A URI reference that identifies the specific occurrence of the problem. */
  instance?: string;
  /** HTTP status code */
  status?: number;
  /**
   * A short, human-readable summary of the problem type. This value should not change between
   * occurrences of the error.
   */
  title?: string;
  /** A URI reference to human-readable documentation for the error. */
  type?: string;
}

export interface Estimate {
  /** The figure, in bytes. */
  bytes: number;
  /** The most, in bytes. */
  high_bytes: number;
  /** The least, in bytes. */
  low_bytes: number;
}

export interface Event {
  /**
   * What the allocator did, as PyTorch names it: alloc, free_requested, segment_alloc and others.
   */
  action: string;
  /** Where, in hexadecimal. */
  address?: string;
  /** The number of the block that it allocates or frees; -1: none. */
  block: number;
  /** The number of the event in the trace, from 0. */
  number: number;
  /** How much, in bytes. */
  size: number;
  /** The stream that it is of. */
  stream?: string;
  /** When, in ns since the first event. */
  time_ns?: number;
}

export interface Events {
  /** The events, oldest first. */
  events: Mark[];
  /** Whether there are more than are given. */
  more?: boolean;
}

export interface Exception {
  /** Its class, without the module. */
  class: string;
  /** The file of the innermost line of the user's own, else of the innermost. */
  file?: string;
  /** Class and text of the first exception, where this one was raised in its handling. */
  from?: string;
  /** Its function. */
  function?: string;
  /** That line, from 1. */
  line?: number;
  /** The process, by its id in the run. */
  process: number;
  /** All of it in a line; absent where the verdict tells of it. */
  sentence?: string;
  /** Whether it was in a part of an LLM server's engine: what ends the server then is no cause. */
  serves?: boolean;
  /** Its text, with secrets masked. */
  text?: string;
  /** When, in ns since the run began. */
  time_ns: number;
}

/** Options of the kind explain: explain a run and its snapshots. */
export interface ExplainOptions {
  /** id of the run */
  run?: string;
}

export interface ExploreEvents {
  /** How many events the trace has. */
  all: number;
  /** The events, oldest first. */
  events: ListEvent[];
  /** The number of the first of these events. */
  from: number;
}

export interface FakeWeights {
  /** How large they are, in bytes. */
  bytes?: number;
  /** The model or file. */
  name: string;
  /** The process, by its id in the run. */
  process: number;
  /** What would have read them: from_pretrained, torch.load or safetensors. */
  what: string;
}

export interface Figure {
  /** Whether processes that lived very shortly may have taken more between two readings. */
  at_least?: boolean;
  /** The peak in bytes. */
  bytes: number;
  /** How far it may be off to either side, in bytes; absent: exact, or not known. */
  error_bytes?: number;
  /** Where it comes from: measured, estimated or imagined. */
  label: Label;
  /** The quantity of which it is the peak, as tree.pss. */
  source: string;
  /** Of what, in short: RSS, PSS, reserved, allocated, on the device. */
  what: string;
}

export interface FigureInfo {
  /** Where it comes from. */
  label: Label;
  /** Its name. */
  name: string;
  /** Of a trial's samples: max, mean or median, which is averaged over trials. */
  statistic: string;
  /** Its name for people. */
  title: string;
  /** Its unit. */
  unit: Unit;
}

export interface Figures {
  /** The highest use of the device, in bytes. */
  device_used_bytes?: number;
  /**
   * The highest PSS of all processes, as far as the run went, in bytes; absent: it was not asked
   * for.
   */
  host_bytes?: number;
  /**
   * What waits in the host's memory in a step, of activations and of the optimizer's state, in
   * bytes; it crosses PCIe twice.
   */
  offloaded_bytes?: number;
  /** The highest of what the allocator gave, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest of what the allocator took from the device, in bytes. */
  peak_reserved_bytes?: number;
  /** Of the forward pass's FLOPs, the share that is computed again. */
  recomputed_share?: number;
}

export interface Finding {
  /** What to change. */
  advice?: string;
  /** Of kind ranks: in what the rank differs. */
  aspect?: string;
  /** What it is about, at the peak or the end. */
  bytes?: number;
  /** Growth. */
  bytes_per_step?: number;
  /** 0 to 1. */
  confidence?: number;
  /** Half width of the 95 % interval of bytes_per_step, else of bytes. */
  error_bytes?: number;
  /** Where the line to change is. */
  file?: string;
  /** Name of the container that keeps it. */
  holder?: string;
  /** What sort it is, as leak, growth or oom. */
  kind: string;
  /** Where the figures come from. */
  label: Label;
  /** That line. */
  line?: number;
  /** In which it is. */
  phase?: string;
  /** Id in the run; absent: of no single one. */
  process?: number;
  /** How bad it is. */
  severity: "critical" | "warning" | "info";
  /** Where it was allocated. */
  site_file?: string;
  /** Its function. */
  site_function?: string;
  /** The line that allocates, from 1. */
  site_line?: number;
  /** The stack that allocates, innermost first. */
  stack?: Location[];
  /** What was found, with its figures. */
  text: string;
  /** A few words. */
  title: string;
}

export interface Findings {
  /** What was found, worst first. */
  findings: Finding[];
}

export interface FinishInputBody {
  /** The names of all files that were sent. */
  files: string[];
}

export interface Fit {
  /** The axis of batches. */
  axis: string;
  /** The line to be drawn, of the longest sequences. */
  curve?: MatrixCurve;
  /** The figure. */
  figure: string;
  /** The form, as a + b × batch. */
  form: string;
  /** How many points there are beyond the number of terms; 0 says nothing of the form. */
  freedom: number;
  /** Whether that can be told: there are cells enough, and the noise is known. */
  judged: boolean;
  /** The largest batch that memory is predicted to hold. */
  limit?: Limit;
  /** The cells. */
  points: FitPoint[];
  /** The coefficient of determination. */
  r2: number;
  /** The same in words. */
  sentence: string;
  /** The axis of lengths of sequences; absent: they are not varied. */
  sequence?: string;
  /** Whether what is left over is no more than the noise of the runs. */
  straight: boolean;
  /** Its terms. */
  terms: Term[];
  /** The values of the other axes; empty at those two. */
  values: string[];
}

/** Options of the kind fit: find the largest batch that fits. */
export interface FitOptions {
  /** settings of PyTorch's allocator, as expandable_segments:True */
  alloc_conf?: string;
  /** autocast to this type: bf16 or fp16 */
  amp?: "bf16" | "fp16";
  /** gradient checkpointing, where the model offers it */
  checkpointing?: boolean;
  /**
   * a training command with {batch} where the batch size goes; in place of a model; a list, a word
   * each
   */
  command?: string[];
  /** torch.compile the model */
  compile?: boolean;
  /** batch in use now, to say what it leaves unused (default 16) */
  current?: number;
  /** where to run: imaginary, cuda or cpu (default imaginary with gpu, else cuda) */
  device?: string;
  /** type of weights and activations: fp32, tf32, bf16 or fp16 (default fp32) */
  dtype?: "fp32" | "tf32" | "bf16" | "fp16";
  /**
   * name of the GPU to imagine, as hightide gpus lists them; without one the machine's own is used
   */
  gpu?: string;
  /** plan gradient accumulation to this batch */
  grad_accum?: number;
  /** leave this part of the device free, as 5% or 1GiB */
  headroom?: string;
  /** pixels of an image's side (default 224) */
  image_size?: number;
  /** no gradients; a language model fills its KV cache to seq_len */
  inference?: boolean;
  /** size of the GPU's memory in place of the catalogue's, as 24GiB; with device cpu the limit */
  memory?: string;
  /**
   * model to build, by name; or a config file, org/model of the hub, or module:function; bert,
   * gpt2, resnet, a name of torchvision, or a model type of transformers; in place of a command
   */
  model?: string;
  /** never try a larger batch than this */
  most?: number;
  /** name of the optimizer: none, sgd, adam, adamw or adafactor (default none) */
  optimizer?: "none" | "sgd" | "adam" | "adamw" | "adafactor";
  /** price of the GPU in USD an hour (default the catalogue's) */
  price?: number;
  /** interpreter for model (default that of $VIRTUAL_ENV, else the first with torch) */
  python?: string;
  /** tokens of a sequence (default 128) */
  seq_len?: number;
  /** preset of a model type, as 8b of llama */
  size?: string;
  /** batch to begin with (default current) */
  start?: number;
  /** try only multiples of this number (default 1) */
  step?: number;
  /** training mode (dropout, batch statistics) */
  train?: boolean;
  /** compare the peak with that of the forward pass alone */
  validate_backward?: boolean;
}

export interface FitOutcome {
  /** With --grad-accum: how to reach that batch. */
  accumulation?: Accumulation;
  /** The command, with {batch} in it; absent: a model was built. */
  command?: string[];
  /** What the GPU costs. */
  cost?: Cost;
  /** The batch in use now. */
  current_batch: number;
  /** Where it ran: imaginary, cuda or cpu. */
  device: string;
  /** How long the search took, in ns. */
  duration_ns: number;
  /** The least batch that was seen to fail; absent: none was. */
  fails_at?: number;
  /** The short name of that GPU. */
  gpu?: string;
  /** The row of the catalogue, of an imaginary device. */
  gpu_facts?: GpusGPU;
  /** Only multiples of this batch were tried. */
  granularity: number;
  /** Of measured devices: beyond this batch a larger one gains little speed. */
  knee_batch?: number;
  /** Where the figures come from: imagined or measured. */
  label: Label;
  /** The largest batch that fits; 0: not even the smallest. */
  largest_batch: number;
  /** Where the largest batch leaves less room than that: the largest that leaves it. */
  largest_with_room?: number;
  /** How far the memory of that batch may be off, in bytes. */
  largest_with_room_error_bytes?: number;
  /** How that is known: estimated where that batch was not run. */
  largest_with_room_label?: Label;
  /** The same in the fields of MemoryMark. */
  memorymark?: MemoryMark;
  /** What was run, with which Python and versions. */
  model: Ready;
  /** What else is to be known, for people. */
  notes: string[];
  /** What other GPUs would leave, as estimated. */
  other_gpus?: GPUVerdict[];
  /** Of measured devices: samples a second by batch. */
  throughput?: Throughput[];
  /**
   * Room in bytes below which a fit is called tight: other drivers, settings or versions may not
   * fit.
   */
  tight_below_bytes?: number;
  /** The memory of the device in bytes. */
  total_bytes?: number;
  /** What was tried, in that order. */
  trials: Trial[];
  /** What that batch leaves of the device, in bytes. */
  unused_at_current_bytes?: number;
  /** The error of an estimate in bytes: the distance to the further of the two that were run. */
  unused_at_current_error_bytes?: number;
  /**
   * How that is known: estimated, where that batch was not run, from the line between those that
   * were.
   */
  unused_at_current_label?: Label;
  /** With --validate-backward: the peak beside that of the forward pass alone. */
  validate_backward?: BackwardCheck;
  /** The version of this form. */
  version: number;
}

export interface FitPoint {
  /** Its batch. */
  batch: number;
  /** The place of the cell in cells. */
  cell: number;
  /** That less what the form gives. */
  residual: number;
  /** Its length of sequences. */
  sequence?: number;
  /** What was measured. */
  value: number;
}

export interface Flame {
  /** As the driver or the framework calls it: nvidia:0, cuda:0. */
  device?: string;
  /** Which of the devices of the snapshot. */
  device_number?: number;
  /** Half the 95 % interval of the total, in bytes. */
  error_bytes?: number;
  /** Of a trace: the number of the last event before. */
  event?: number;
  /** Of a snapshot. */
  file?: string;
  /** Places in code, each once. */
  frames: FramePlace[];
  /** Whose allocator it is. */
  framework?: string;
  /** Where the figures come from. */
  label: Label;
  /** What the flame graph can show. */
  measures?: FlameMeasure[];
  /** heap of a process, or device of a snapshot. */
  name: string;
  /**
   * By frame: the number of its place, by which its source is asked for; -1: it stands for a stack
   * without frames.
   */
  numbers: number[];
  /** All that in words. */
  of?: string;
  /**
   * The stacks as a tree: by node, the node that called it, which comes before it; -1: it is an
   * outermost one.
   */
  parents: number[];
  /** By node: the number of its place among the frames. */
  places: number[];
  /** The point at which the blocks lived; -1: they are of a range. */
  point: number;
  /** Id in the run; absent: those of the whole run, or of the machine. */
  process?: number;
  /** Bytes of stacks that are too thin to list. */
  rest_bytes?: number;
  /** The stacks, most bytes first. */
  stacks: StackUse[];
  /** How many steps were completed before. */
  step?: number;
  /** The moment, in ns since the run began. */
  time_ns?: number;
  /** The same for people. */
  title: string;
  /** The sum over all stacks in bytes. */
  total_bytes: number;
}

export interface FlameMeasure {
  /** Of a device bytes, bytes-time, count or churn; of a heap bytes, end or churn. */
  name: string;
  /** What stacks that are not listed have of it, in that unit. */
  rest?: number;
  /** The same for people. */
  title: string;
  /** The sum over all stacks, in that unit. */
  total: number;
  /** Its unit. */
  unit: Unit;
}

export interface FleetHolding {
  /** Of GPUs, as drivers put it down to processes; absent: no driver says that it holds any. */
  device_bytes?: number;
  /** The line that holds most of a host's heap; absent: not known. */
  line?: Line;
  /** On which it holds something. */
  machines: string[];
  /** Of the person, or of the job. */
  name: string;
  /** Whose job it is. */
  person?: string;
  /** Of those that are listed. */
  processes: number;
  /** Of the job; absent: not known. */
  project?: string;
  /**
   * The same, shared pages divided by their users; absent: it is not known of all of its processes.
   */
  pss_bytes?: number;
  /** Of hosts: shared pages count in each process that has them. */
  rss_bytes: number;
  /** Runs that hightide records of it. */
  runs: string[];
}

export interface FleetReport {
  /** Of the report in its session; a report that was taken already is not counted again. */
  number: number;
  /** Of one start of hightide watch; with number it names a report. */
  session: string;
  /** What the machine holds. */
  state: FleetState;
  /** What was reserved since the report before. */
  used: Used[];
}

export interface FleetState {
  /** What programs can still take of it, as the kernel says. */
  available_bytes?: number;
  /** Processors. */
  cores: number;
  /** The time between two reports. */
  every_ns: number;
  /** The GPUs. */
  gpus: Card[];
  /** Control groups of jobs and containers that holders are in. */
  groups: Group[];
  /** Processes that hold memory, the largest first. */
  holders: Holder[];
  /** Of the host. */
  memory_bytes?: number;
  /** What could not be looked at, and why. */
  notes?: string[];
  /** Processes that hold less than those that are listed. */
  others: number;
  /** What they have resident, summed: shared pages count once for each. */
  others_rss_bytes: number;
  /** Since when it has been looked at without a break. */
  since_unix_ns: number;
  /** When it was looked at, by its own clock. */
  time_unix_ns: number;
  /** Of hightide there. */
  version: string;
}

export interface Forgotten {
  /**
   * Users of machines of that name, who wrote comments with the database's password and need not be
   * that person.
   */
  users: string[];
}

export interface Found {
  /** The bytes of those that lived at the peak. */
  at_peak: number;
  /** How many blocks of the whole trace match. */
  blocks: number;
  /** The sum of their sizes in bytes. */
  bytes: number;
  /** The largest of them. */
  largest: FoundOne[];
  /** Their lines: most bytes at the peak first, then most at all. */
  sites: FoundSite[];
}

export interface FoundOne {
  /** The point from which on it was allocated; 0: before the trace. */
  begin: number;
  /** The point from which on it was not; -1: it outlives the trace. */
  end: number;
  /** The number of the block in the trace. */
  n: number;
  /** The line that allocated it. */
  site: string;
  /** Its size in bytes. */
  size: number;
}

export interface FoundSite {
  /** The bytes of those that lived at the peak. */
  at_peak: number;
  /** How many of its blocks match. */
  blocks: number;
  /** The sum of their sizes in bytes. */
  bytes: number;
  /** The file; absent: not recorded. */
  file?: string;
  /** The line, from 1. */
  line?: number;
  /** The line and its function, as reports show it. */
  name: string;
  /** The number of the line among the sites of the labels. */
  site: number;
  /** Whether it is the program's own, not an installed package's. */
  user?: boolean;
}

export interface Fragmentation {
  /** When empty_cache would have given back most. */
  empty_cache: EmptyCache;
  /** Bytes cached in segments that are in use elsewhere. */
  inactive_split_bytes: number;
  /** What is cached beside blocks in use, by the size of the pieces. */
  inactive_split_classes: SizeClass[];
  /** Bytes cached in private pools, which keep them while they live. */
  pooled_bytes: number;
  /** Bytes that empty_cache would give back. */
  releasable_bytes: number;
  /**
   * Bytes that the program asked for, of blocks in use; absent where the file tells only the
   * blocks' own sizes.
   */
  requested_bytes?: number;
  /**
   * Bytes of all segments: the sum of requested, rounding, waiting, releasable, pooled and stuck.
   */
  reserved_bytes: number;
  /** What rounding adds, by site, most first. */
  rounding_by_site: RoundingWaste[];
  /** Bytes that rounding adds to them; absent where what was asked for is. */
  rounding_bytes?: number;
  /** How many segments there are. */
  segments: number;
  /** Bytes cached beside blocks in use. */
  stuck_bytes: number;
  /** Bytes that are freed and that another stream still uses. */
  waiting_bytes: number;
}

export interface FramePlace {
  /** The file; of native code the library. */
  file: string;
  /** The function. */
  function?: string;
  /** The line, from 1; absent: not known. */
  line?: number;
  /** Whether it is native code, not Python. */
  native?: boolean;
  /**
   * The text of its line, where the file is on this machine and did not change since the run began.
   */
  source?: string;
  /** Whether it is the program's own, not an installed package's. */
  user?: boolean;
}

export interface GPU {
  /** The version of the driver. */
  driver?: string;
  /** Its number on the machine. */
  index: number;
  /** Its memory in bytes. */
  memory_bytes?: number;
  /** Its name, as the driver tells it. */
  name: string;
  /** Its id, as the driver tells it. */
  uuid?: string;
  /** Who makes it. */
  vendor: string;
}

export interface GPUList {
  /** The GPUs of the catalogue, but those whose memory is a formula. */
  gpus: GpusGPU[];
}

export interface GPUVerdict {
  /** The compute capability, as 8.6. */
  compute_capability?: string;
  /** What a process takes beside the framework's allocator, in bytes. */
  context_overhead_bytes: number;
  /** The GPU's short name in the catalogue. */
  gpu: string;
  /** Its full name. */
  gpu_name: string;
  /** The memory less its highest use, in bytes; negative: what is missing, where that is known. */
  headroom_bytes?: number;
  /** Of an LLM server that is ready: how many tokens its KV cache holds. */
  kv_tokens?: number;
  /** Where the figures come from: imagined or estimated. */
  label: Label;
  /** How many multiprocessors it has. */
  multiprocessors?: number;
  /** What limits the verdict. */
  note?: string;
  /** The highest of what the allocator gave, of the fullest process, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest use of the fullest GPU, everything in it, in bytes. */
  peak_device_used_bytes?: number;
  /**
   * What the program needs of the fullest GPU, in bytes, where its framework takes memory ahead of
   * need.
   */
  peak_needed_bytes?: number;
  /** The highest of what the allocator took from the device, of the fullest process, in bytes. */
  peak_reserved_bytes?: number;
  /** A price in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** The GPU's memory as a framework sees it, in bytes. */
  total_bytes: number;
  /**
   * Of an LLM server, where a number of users was asked for: how many sequences of the length asked
   * it runs at once.
   */
  users?: number;
  /** fits, tight, conditional, few, oom, failed, unused, or none: no verdict. */
  verdict: string;
}

export interface Git {
  /** The branch. */
  branch?: string;
  /** The commit that was checked out. */
  commit: string;
  /** Whether files differed from the commit. */
  dirty: boolean;
}

export interface Goal {
  /** The figure of each cell that was to be known. */
  figure: string;
  /** The least repeats of each cell. */
  least: number;
  /** The most. */
  most: number;
  /** Half the width of its 95 % interval that was asked for, as a part of the mean; 0: none. */
  within: number;
}

export interface GpusGPU {
  /** Further names that are understood. */
  aliases?: string[];
  /** The architecture's name. */
  arch?: string;
  /** The bandwidth of its memory in GB a second, of 10^9 bytes. */
  bandwidth_gb_per_s?: number;
  /** How the L2 cache and the clock are known. */
  clock_basis?: string;
  /** The highest clock of its multiprocessors in MHz; absent: not known. */
  clock_mhz?: number;
  /** The compute capability, as 8.6; of AMD as gfx942. */
  compute_capability: string;
  /** How sure the figures of its memory are: high, medium, low, or spec only. */
  confidence?: string;
  /** How what a process takes is known. */
  context_overhead_basis: string;
  /** What a process takes beside the framework's allocator, in bytes. */
  context_overhead_bytes: number;
  /** The highest of that which was seen, in bytes. */
  context_overhead_high_bytes?: number;
  /** Whether who asks said what a process takes, so that nothing is left open. */
  context_overhead_known?: boolean;
  /** The lowest of that which was seen, in bytes. */
  context_overhead_low_bytes?: number;
  /** Its short name, as --gpu takes it. */
  gpu: string;
  /** Its L2 cache, in bytes; absent: not known. */
  l2_bytes?: number;
  /** How many multiprocessors it has. */
  multiprocessors: number;
  /** Its full name. */
  name: string;
  /** What else is to be known of it. */
  notes?: string;
  /** Of which day the price is. */
  price_date?: string;
  /** Prices elsewhere. */
  price_other?: string;
  /** Whose price it is. */
  price_source?: string;
  /** A price in USD an hour, on demand; absent: none is known. */
  price_usd_per_hour?: number;
  /**
   * Absent: it is looked at wherever all are; named: where it is named, and by plan; formula: by
   * plan alone, as no real figure of its memory is known.
   */
  scope?: string;
  /** Where the row comes from: catalogue, or the user's file. */
  source: string;
  /** How the memory is known. */
  total_basis: string;
  /** Its memory as a framework sees it, in bytes. */
  total_bytes: number;
  /** The lowest that was ever seen of this GPU, in bytes; absent: not known. */
  total_lowest_bytes?: number;
  /** Every value that was seen, in GiB, with how often. */
  total_seen?: string;
  /** Who makes it. */
  vendor: string;
}

export interface Group {
  /** Of that, pages of files that the kernel can take back. */
  cache_bytes?: number;
  /** By which holders name it; on one machine. */
  id: string;
  /** The number of the job, or of the pod or container. */
  job: string;
  /** What made it; empty: not known. */
  kind: "slurm" | "kubernetes" | "container" | "";
  /** What it may take; absent: as much as there is. */
  limit_bytes?: number;
  /**
   * The most that it was charged with since it was made, the cache of files included; absent: the
   * kernel does not tell.
   */
  peak_bytes?: number;
  /**
   * What was requested of Kubernetes for it, at least, by the OOM score that its processes have
   * (estimated); absent: not known, or nothing.
   */
  request_bytes?: number;
  /** The same, at most. */
  request_most_bytes?: number;
  /** What it is charged with, the cache of files included. */
  used_bytes?: number;
}

export interface Growth {
  /** Its slope. */
  bytes_per_hour: number;
  /** Half the 95 % interval of that. */
  error_bytes_per_hour: number;
  /** The time over which it was seen to grow. */
  over_ns: number;
  /** Resident memory, or memory of GPUs. */
  what: "rss" | "device";
}

export interface Guess {
  /** Of other uses: the largest batch. */
  batch?: PlanRange;
  /** What was estimated to be left. */
  room: Estimate;
  /** Of a server: tokens that its cache would hold. */
  tokens?: PlanRange;
  /** Of a server: sequences at once. */
  users?: PlanRange;
  /** By the room that was estimated. */
  verdict: string;
}

export interface Headline {
  /** Its parts: the peak, then what else there is to say. */
  clauses: string[];
  /** Whether the recording has its end. */
  complete: boolean;
  /** How long the command ran, in ns. */
  duration_ns: number;
  /** A score of 0 to 10 in thousandths; the table of that name says what it is made of. */
  efficiency_milli?: number;
  /** How it ended, in lists too. Absent: it is no run. */
  ended?: Ending;
  /** What Python said of a program that failed. */
  exception?: Exception;
  /** The command's exit code; absent where a signal ended it or its end was not seen. */
  exit_code?: number;
  /**
   * The one figure by which the run is known, in lists too. Absent: none was observed, or it is no
   * run.
   */
  figure?: Figure;
  /**
   * What the allocator that leads had and nobody used when its curve was highest: of a framework
   * reserved, not allocated; of the host free in malloc, in the process that took most; of an
   * imagined run the peak reserved without the peak allocated. Absent: not known.
   */
  fragmentation?: Figure;
  /** The line whose blocks are replaced by ever larger ones, as a note says. */
  gets_larger?: string;
  /**
   * Steady growth after the warm-up, in bytes a step; 0: looked for and not seen; absent: too few
   * steps to tell.
   */
  growth_bytes_per_step?: number;
  /**
   * How far the growth may be off, in bytes a step; of 0, the slowest that all processes could have
   * and that is not told.
   */
  growth_error_bytes_per_step?: number;
  /** How the growth is known. */
  growth_label?: Label;
  /** Where growth is 0: the least over the run, of a process, that is told, in bytes. */
  growth_least_bytes?: number;
  /** Whether a process that ran before the recording went on after it. */
  left?: boolean;
  /** From how much on growth would have been told, where none was. */
  looked_for?: string;
  /** The series that the picture leads with. */
  main_source?: string;
  /** What was not looked for, and why; absent: all was. */
  not_looked_for?: string;
  /**
   * What there is to say of a run in which nothing was found; absent: something was, or it is no
   * run.
   */
  nothing?: string;
  /** The highest of each figure. */
  peak: Peak;
  /** The signal that ended it. */
  signal?: number;
  /** The median of a step's time in ns. */
  step_time_ns?: number;
  /** How many optimizer steps were completed; 0: there was no training. */
  steps: number;
  /** Whether it ended as it was asked to. */
  stopped?: boolean;
  /** One sentence for people. */
  verdict: string;
  /** Whether that is good news: all was looked for, and the program ended well. */
  well?: boolean;
}

export interface Heard {
  /** True: it is kept. */
  taken: boolean;
}

export interface HeldLine {
  /** How many blocks that were. */
  blocks: number;
  /** What its blocks held at the peak, in bytes. */
  bytes: number;
  /** The file. */
  file: string;
  /** Its function. */
  function?: string;
  /** The line, from 1. */
  line: number;
  /** Whether it is a line of the program, not of a library. */
  user?: boolean;
  /** Of XLA: arrays, or temporaries of the program that ran. */
  what?: string;
}

export interface HeldModule {
  /** How many blocks that were. */
  blocks: number;
  /** What its blocks held at the peak, in bytes. */
  bytes: number;
  /** The module, as vllm.v1.worker.gpu_model_runner; outside of packages the name of the file. */
  module: string;
}

export interface Holder {
  /** When it was first seen: it may be older. */
  began_unix_ns: number;
  /** Of one processor, since the look before. */
  cpu_milli?: number;
  /** What it holds of all GPUs; absent: no driver says that it holds any. */
  device_bytes?: number;
  /** Which of the groups it is in; absent: none of them. */
  group?: string;
  /** What has grown steadily since it was seen. */
  grows?: Growth[];
  /** What tells that it does nothing. */
  idle_by?: string;
  /** Since when it does nothing; absent: it works. */
  idle_since_unix_ns?: number;
  /** What the scheduler calls its job; absent: not known. */
  job_name?: string;
  /** The line whose allocations hold most of its host's heap now; absent: not known. */
  line?: Line;
  /** The same, by GPU. */
  on_gpus?: OnCard[];
  /** The highest that was seen. */
  peak_device_bytes?: number;
  /** The highest that was seen. */
  peak_rss_bytes: number;
  /** Whose it is. */
  person: string;
  /** Its number. */
  pid: number;
  /** Its command, secrets masked, cut. */
  program: string;
  /** Of its run, or its account with the scheduler; absent: not known. */
  project?: string;
  /** The same, shared pages divided by their users; absent: not looked for, or not allowed. */
  pss_bytes?: number;
  /** Resident memory: shared pages count in each process that has them. */
  rss_bytes: number;
  /** The run that hightide records of it; absent: none, or it could not be looked at. */
  run?: string;
}

export interface Holding {
  /** What it held, in bytes. */
  bytes: number;
  /** Half width of the 95 % interval; absent: exact, or not known. */
  error_bytes?: number;
  /** Of a line: its file. */
  file?: string;
  /** Of a line: its function. */
  function?: string;
  /** Of a part: allocations, free, files, shared, rest, process, or what of the model. */
  kind?: string;
  /** Where the figure comes from. */
  label: Label;
  /** Of a line: its number in the file, from 1. */
  line?: number;
  /** As it is called beside another run's: without numbers of processes. */
  name: string;
}

export interface HoldingLines {
  /** The largest first. */
  lines: Holding[];
  /** All that the heap held, in bytes. */
  total_bytes: number;
  /**
   * The most that the lines of one function held that are not listed, in bytes; with the error of
   * the sample.
   */
  unlisted_bytes: number;
}

export interface Host {
  /** The model of its processor. */
  cpu?: string;
  /** How many processors it has. */
  cpus: number;
  /** Its GPUs. */
  gpus?: GPU[];
  /** The version of the kernel. */
  kernel?: string;
  /** Its memory in bytes. */
  memory_bytes?: number;
  /** The limit of the control group in bytes, where there is one. */
  memory_limit_bytes?: number;
  /** The name of the machine. */
  name?: string;
  /** The operating system. */
  os: string;
  /** The size of a page in bytes. */
  page_bytes: number;
}

/** Options of the kind imagine: run a program on GPUs that are not there. */
export interface ImagineOptions {
  /** settings of PyTorch's allocator, as expandable_segments:True */
  alloc_conf?: string;
  /**
   * the program and its arguments, as you would type it on the machine with the GPU; it runs here,
   * unmodified, and no kernel does; a list, a word each
   */
  command?: string[];
  /**
   * size of device memory that a process takes beside PyTorch's allocator, as 900MiB; hightide info
   * --calibrate measures it
   */
  context?: string;
  /**
   * sizes that depend on data: upper (their upper bound), zero, or a fraction of the bound (default
   * upper)
   */
  data_sizes?: string;
  /** stop after that time, as in 90s or 2h */
  duration?: string;
  /** where weights are not on this machine, make up some of the right shapes */
  fake_weights?: boolean;
  /** name of a GPU as in hightide gpus, several with commas, or all (default h100-sxm) */
  gpu?: string;
  /** number of these GPUs in the machine (default 1) */
  gpus?: number;
  /**
   * of an LLM server: before it ends, have it answer requests over HTTP, as 8x512+128: 8 at once,
   * of 512 tokens and 128 of answer each
   */
  load?: string;
  /** put the largest sample of a data set into the first batch */
  longest?: boolean;
  /** size of the GPU's memory in place of the catalogue's, as 24GiB */
  memory?: string;
  /** name of the run, for later commands */
  name?: string;
  /** do not try what would make it fit */
  no_suggest?: boolean;
  /**
   * which ranks to play, as 0,1,127, 0-15, 0-120/8 or all; each kind once, at most 64 (default all
   * of up to eight, else the first two, a middle one and the last)
   */
  play?: string;
  /**
   * value that the program reads where a GPU would have computed it: a number for all lines, or
   * LINE=VALUE; may be given several times
   */
  read_value?: string[];
  /** let the program write into a folder that is deleted afterwards */
  sandbox?: boolean;
  /** also sample the host heap with Python stacks */
  stacks?: boolean;
  /**
   * stop after this number of optimizer steps; auto: once the peak is steady; 0: run to the end
   * (default auto)
   */
  steps?: string;
  /** where it does not fit, try what would make it fit (default true) */
  suggest?: boolean;
  /** tag as key=value; may be given several times */
  tag?: Record<string, string>;
  /**
   * number of tokens of each of them, prompt and answer together (default: the longest that the
   * engine takes)
   */
  tokens?: number;
  /**
   * do not stop before this part of the training: evaluation, checkpoint, epoch, several with
   * commas; data loaders are cut short to get there early; ready: stop an LLM server once its
   * engine has started; load: once it has answered load
   */
  until?: ("evaluation" | "checkpoint" | "epoch" | "ready" | "load")[];
  /**
   * of an LLM server: the number of sequences that it is to run at once; of several GPUs the
   * cheapest that does is looked for
   */
  users?: number;
  /**
   * also run with other settings that change the peak: allocator, attention, compile caches,
   * data-dependent sizes, a GPU that is behind the host; of an LLM server: its settings, one at a
   * time
   */
  vary?: boolean;
  /** imagine a cluster of this number of ranks and play some of them, a process each */
  world_size?: number;
}

export interface ImagineOutcome {
  /** The framework that sets it. */
  allocator_limit_by?: string;
  /**
   * What the framework's allocator may take of that device at most, in bytes, where it sets a
   * limit.
   */
  allocator_limit_bytes?: number;
  /** What the request asked for that failed last, in bytes. */
  asked_bytes?: number;
  /** What a fit rests on: steps, and what was not reached. */
  basis?: string;
  /** What the peak is made of. */
  categories?: Category[];
  /** Bytes of the categories that are told by no more than the stack. */
  categories_by_stack_bytes?: number;
  /** The device of these categories. */
  categories_device?: string;
  /**
   * Whether the categories and lines are of what was needed when memory ran out, in place of what
   * was held.
   */
  categories_short?: boolean;
  /** Whether the recording has its end. */
  complete: boolean;
  /** The compute capability, as 8.6. */
  compute_capability?: string;
  /** What the answer rests on, by name: versions, settings, attention and others. */
  conditions?: Record<string, string>;
  /** What a process takes beside the framework's allocator, in bytes. */
  context_overhead_bytes?: number;
  /** Each GPU that was used. */
  devices?: ImaginedDevice[];
  /** Records that were lost on the way. */
  dropped: number;
  /** From the start to the end of the command, in ns. */
  duration_ns: number;
  /**
   * Of a program that failed: the Python exception that nobody caught, of the main process, else of
   * a child.
   */
  exception?: Exception;
  /** The command's exit code; null where a signal ended it. */
  exit_code: number | null;
  /** How a program without a verdict ended. */
  failure?: string;
  /** Weights that were made up in the right shapes. */
  fake_weights?: FakeWeights[];
  /** What was found, worst first. */
  findings: Finding[];
  /** How many steps were completed before the first that ran out of memory. */
  first_failed_step?: number;
  /** The GPU's short name in the catalogue. */
  gpu?: string;
  /** How many GPUs the machine had. */
  gpu_count?: number;
  /** Its full name. */
  gpu_name?: string;
  /** The verdict on each GPU, the cheapest that fits first. */
  gpus?: GPUVerdict[];
  /**
   * Of what was in use at the peak, what the driver keeps for the nodes of CUDA graphs, in bytes,
   * as estimated; of the process that has most.
   */
  graph_nodes_bytes?: number;
  /** What it may be by published figures, from the lowest to the highest, in bytes. */
  graph_nodes_range_bytes?: Range;
  /**
   * Of what the allocator reserved, what the private pools of CUDA graphs had when that was last
   * told, in bytes.
   */
  graph_pools_bytes?: number;
  /**
   * Steady growth after the warm-up, in bytes a step; 0: looked for and not seen; absent: too few
   * steps to tell.
   */
  growth_bytes_per_step?: number;
  /** Where growth is 0: the least over the run, of a process, that is told, in bytes. */
  growth_least_bytes?: number;
  /** The memory less its highest use, in bytes; negative: what is missing, where that is known. */
  headroom_bytes?: number;
  /** The path of the HTML report. */
  html?: string;
  /** Of those, the ones where another number was tried and took the same. */
  indifferent?: Undecided[];
  /** Of an LLM server that is ready: how many tokens its KV cache holds. */
  kv_tokens?: number;
  /** Where the peak comes from. */
  label: Label;
  /** From how much on growth would have been told, where none was. */
  looked_for?: string;
  /** Of a program that was allowed so much host memory: whether it ran in that. */
  memory_limit?: MemoryLimit;
  /** How many multiprocessors it has. */
  multiprocessors?: number;
  /** The name that it was given. */
  name?: string;
  /** What was not looked for, and why: then an empty list of findings says nothing of it. */
  not_looked_for?: string;
  /** What the program did not get to. */
  not_reached?: Unreached[];
  /** What limits the verdict. */
  note?: string;
  /** What was not observed and why, for people. */
  notes?: string[];
  /** What other GPUs would leave, as estimated. */
  other_gpus?: GPUVerdict[];
  /** The run with other numbers. */
  other_values?: Try;
  /** How many requests found no memory. */
  out_of_memory_errors?: number;
  /**
   * The part of the device to which the program limits itself, in bytes, where memory ran out with
   * it.
   */
  own_limit_bytes?: number;
  /** The highest of each figure. */
  peak: Peak;
  /** The highest of what the allocator gave, of the fullest process, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest use of the fullest GPU, everything in it, in bytes. */
  peak_device_used_bytes?: number;
  /** What lines of the program held at the peak, largest first. */
  peak_lines?: HeldLine[];
  /** Of these what was asked for, where the allocator gives more. */
  peak_lines_asked_bytes?: number;
  /** What all lines held together. */
  peak_lines_bytes?: number;
  /** Of an LLM server: what lines of each Python module held at the peak, largest first. */
  peak_modules?: HeldModule[];
  /**
   * What the program needs of the fullest GPU, in bytes, where its framework takes memory ahead of
   * need.
   */
  peak_needed_bytes?: number;
  /** The phase in which the peak was. */
  peak_phase?: string;
  /** The highest of what the allocator took from the device, of the fullest process, in bytes. */
  peak_reserved_bytes?: number;
  /** How many steps were completed before the peak. */
  peak_step?: number;
  /** Sizes that depend on data, and what was taken for them. */
  policies?: Policy[];
  /** A price in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** Why there is no verdict, where that is not the program's own doing. */
  problem?: string;
  /** Each process on each device. */
  ranks?: RankUse[];
  /** Bytes that the host read and nothing computed. */
  read_back_bytes_unmodelled?: number;
  /** The lines that read them. */
  read_backs?: ReadBack[];
  /** The path of the recording. */
  recording?: string;
  /** Paths whose writes went to a folder of their own. */
  redirected_writes?: string[];
  /** Which of those failed, by name. */
  refused_calls?: string[];
  /** By how much more each step takes, where the program was ended although it did. */
  rising?: Rising;
  /** The id of the run, for later commands. */
  run_id: string;
  /** Of an LLM server: what it serves, or how far its start came. */
  serving?: Serving;
  /** The call of a compiled function that found no memory, where the framework tells. */
  short?: ShortCall;
  /** The signal that ended it. */
  signal?: number;
  /** Of those, how a routing or a mask spreads, where both ends fit. */
  spread?: Undecided[];
  /**
   * The median of a step's time in ns; absent without steps, and on imaginary GPUs, where no kernel
   * runs.
   */
  step_time_ns?: number;
  /** How many optimizer steps were completed; 0: there was no training. */
  steps: number;
  /** Why it was ended before the program would: steady, steps or duration. */
  stopped?: string;
  /**
   * Whether --steps or --duration ended it, in good order or by the signal that followed. Of
   * attach: the recording ended so, and the process went on.
   */
  stopped_as_asked?: boolean;
  /** The headroom below which a fit is called tight, in bytes. */
  tight_below_bytes?: number;
  /** The GPU's memory as a framework sees it, in bytes. */
  total_bytes?: number;
  /** How the GPU's memory is known. */
  total_label?: Label;
  /** Further runs, each with one thing changed that might make it fit. */
  tries?: Try[];
  /** Numbers that nobody computed and that decide something. */
  undecided?: Undecided[];
  /** How often calls did nothing as nobody models them, by name. */
  unmodelled_calls?: Record<string, number>;
  /**
   * Of an LLM server, where a number of users was asked for: how many sequences of the length asked
   * it runs at once.
   */
  users?: number;
  /** Further runs that were asked for. */
  variations?: Try[];
  /** fits, tight, conditional, few, oom, failed, unused, or none: no verdict. */
  verdict?: string;
  /** The version of this form. */
  version: number;
}

export interface Imagined {
  /** The framework that sets it. */
  allocator_limit_by?: string;
  /**
   * What the framework's allocator may take of that device at most, in bytes, where it sets a
   * limit.
   */
  allocator_limit_bytes?: number;
  /** What the request asked for that failed last, in bytes. */
  asked_bytes?: number;
  /** What a fit rests on: steps, and what was not reached. */
  basis?: string;
  /** What the peak is made of. */
  categories?: Category[];
  /** Bytes of the categories that are told by no more than the stack. */
  categories_by_stack_bytes?: number;
  /** The device of these categories. */
  categories_device?: string;
  /**
   * Whether the categories and lines are of what was needed when memory ran out, in place of what
   * was held.
   */
  categories_short?: boolean;
  /** The compute capability, as 8.6. */
  compute_capability?: string;
  /** What the answer rests on, by name: versions, settings, attention and others. */
  conditions?: Record<string, string>;
  /** What a process takes beside the framework's allocator, in bytes. */
  context_overhead_bytes: number;
  /** Each GPU that was used. */
  devices?: ImaginedDevice[];
  /** How a program without a verdict ended. */
  failure?: string;
  /** Weights that were made up in the right shapes. */
  fake_weights?: FakeWeights[];
  /** How many steps were completed before the first that ran out of memory. */
  first_failed_step?: number;
  /** The GPU's short name in the catalogue. */
  gpu: string;
  /** How many GPUs the machine had. */
  gpu_count: number;
  /** Its full name. */
  gpu_name: string;
  /** The verdict on each GPU, the cheapest that fits first. */
  gpus?: GPUVerdict[];
  /**
   * Of what was in use at the peak, what the driver keeps for the nodes of CUDA graphs, in bytes,
   * as estimated; of the process that has most.
   */
  graph_nodes_bytes?: number;
  /** What it may be by published figures, from the lowest to the highest, in bytes. */
  graph_nodes_range_bytes?: Range;
  /**
   * Of what the allocator reserved, what the private pools of CUDA graphs had when that was last
   * told, in bytes.
   */
  graph_pools_bytes?: number;
  /** The memory less its highest use, in bytes; negative: what is missing, where that is known. */
  headroom_bytes?: number;
  /** Of those, the ones where another number was tried and took the same. */
  indifferent?: Undecided[];
  /** Of an LLM server that is ready: how many tokens its KV cache holds. */
  kv_tokens?: number;
  /** Where the figures come from: imagined or estimated. */
  label: Label;
  /** How many multiprocessors it has. */
  multiprocessors?: number;
  /** What the program did not get to. */
  not_reached?: Unreached[];
  /** What limits the verdict. */
  note?: string;
  /** The run with other numbers. */
  other_values?: Try;
  /** How many requests found no memory. */
  out_of_memory_errors?: number;
  /**
   * The part of the device to which the program limits itself, in bytes, where memory ran out with
   * it.
   */
  own_limit_bytes?: number;
  /** The highest of what the allocator gave, of the fullest process, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest use of the fullest GPU, everything in it, in bytes. */
  peak_device_used_bytes?: number;
  /** What lines of the program held at the peak, largest first. */
  peak_lines?: HeldLine[];
  /** Of these what was asked for, where the allocator gives more. */
  peak_lines_asked_bytes?: number;
  /** What all lines held together. */
  peak_lines_bytes?: number;
  /** Of an LLM server: what lines of each Python module held at the peak, largest first. */
  peak_modules?: HeldModule[];
  /**
   * What the program needs of the fullest GPU, in bytes, where its framework takes memory ahead of
   * need.
   */
  peak_needed_bytes?: number;
  /** The phase in which the peak was. */
  peak_phase?: string;
  /** The highest of what the allocator took from the device, of the fullest process, in bytes. */
  peak_reserved_bytes?: number;
  /** How many steps were completed before the peak. */
  peak_step?: number;
  /** Sizes that depend on data, and what was taken for them. */
  policies?: Policy[];
  /** A price in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** Why there is no verdict, where that is not the program's own doing. */
  problem?: string;
  /** Each process on each device. */
  ranks?: RankUse[];
  /** Bytes that the host read and nothing computed. */
  read_back_bytes_unmodelled: number;
  /** The lines that read them. */
  read_backs?: ReadBack[];
  /** Paths whose writes went to a folder of their own. */
  redirected_writes?: string[];
  /** Which of those failed, by name. */
  refused_calls?: string[];
  /** By how much more each step takes, where the program was ended although it did. */
  rising?: Rising;
  /** Of an LLM server: what it serves, or how far its start came. */
  serving?: Serving;
  /** The call of a compiled function that found no memory, where the framework tells. */
  short?: ShortCall;
  /** Of those, how a routing or a mask spreads, where both ends fit. */
  spread?: Undecided[];
  /** Why it was ended before the program would: steady, steps or duration. */
  stopped?: string;
  /** The headroom below which a fit is called tight, in bytes. */
  tight_below_bytes: number;
  /** The GPU's memory as a framework sees it, in bytes. */
  total_bytes: number;
  /** How the GPU's memory is known. */
  total_label?: Label;
  /** Further runs, each with one thing changed that might make it fit. */
  tries?: Try[];
  /** Numbers that nobody computed and that decide something. */
  undecided?: Undecided[];
  /** How often calls did nothing as nobody models them, by name. */
  unmodelled_calls: Record<string, number>;
  /**
   * Of an LLM server, where a number of users was asked for: how many sequences of the length asked
   * it runs at once.
   */
  users?: number;
  /** Further runs that were asked for. */
  variations?: Try[];
  /** fits, tight, conditional, few, oom, failed, unused, or none: no verdict. */
  verdict: string;
}

export interface ImaginedDevice {
  /** What a process takes on it beside the framework's allocator, in bytes. */
  context_overhead_bytes: number;
  /** How many requests found no memory. */
  failed_requests: number;
  /** The GPU's short name in the catalogue. */
  gpu: string;
  /** Its number on the machine. */
  index: number;
  /** The highest use of it, in bytes. */
  peak_used_bytes: number;
  /** The rank that it belonged to, where ranks are played alone. */
  rank?: number;
  /** Its memory in bytes. */
  total_bytes: number;
}

export interface Interval {
  /** Its upper end. */
  high: number;
  /** Its lower end. */
  low: number;
}

export interface Job {
  /** What came of it in a few words: fits, out of memory, at most 64. */
  answer?: string;
  /** Who asked for it, and from which address: session 1 at 127.0.0.1:40112, or token at one. */
  asked_by: string;
  /** When it was asked for, in ns since 1970. */
  asked_ns: number;
  /** When it ended; absent: it did not. */
  ended_ns?: number;
  /** What requests call it. */
  id: string;
  /** What is done. */
  kind: "imagine" | "fit" | "tune" | "bench" | "search" | "explain";
  /** The matrix that it measures. */
  matrix?: string;
  /** Why and where it records outside the data directory; this server does not have that run. */
  note?: string;
  /** The same with its kind, as the run that it recorded says it. Absent: it has none. */
  outcome?: Ending;
  /** The end of what its programs wrote. */
  output?: string;
  /** Why it failed, and what to do. */
  problem?: string;
  /** What its command prints with --json, once there is one. */
  result?: unknown;
  /** The run that it recorded. */
  run?: string;
  /** When it began; absent: it waits. */
  started_ns?: number;
  /** What has become of it. */
  state: "queued" | "running" | "done" | "failed" | "cancelled";
  /** What it does, in words. */
  title: string;
}

export interface JobEnd {
  /** What came of it in a few words: fits, out of memory, at most 64. */
  answer?: string;
  /** Who asked for it, and from which address: session 1 at 127.0.0.1:40112, or token at one. */
  asked_by: string;
  /** When it was asked for, in ns since 1970. */
  asked_ns: number;
  /** When it ended; absent: it did not. */
  ended_ns?: number;
  /** What requests call it. */
  id: string;
  /** What is done. */
  kind: "imagine" | "fit" | "tune" | "bench" | "search" | "explain";
  /** The matrix that it measures. */
  matrix?: string;
  /** Why and where it records outside the data directory; this server does not have that run. */
  note?: string;
  /** The same with its kind, as the run that it recorded says it. Absent: it has none. */
  outcome?: Ending;
  /** The end of what its programs wrote. */
  output?: string;
  /** Why it failed, and what to do. */
  problem?: string;
  /** What its command prints with --json, once there is one. */
  result?: unknown;
  /** The run that it recorded. */
  run?: string;
  /** When it began; absent: it waits. */
  started_ns?: number;
  /** What has become of it. */
  state: "queued" | "running" | "done" | "failed" | "cancelled";
  /** What it does, in words. */
  title: string;
}

export interface JobList {
  /** The jobs that this server has had. */
  jobs: Job[];
}

export interface Key {
  /** Whose it is. */
  account: string;
  /** From when on it is good no more; absent: it does not expire. */
  expires?: string;
  /** When it was made. */
  made: string;
  /** What it may: read; push: change runs too; exec: start programs too; admin: the server too. */
  may: string;
  /** Its name. */
  name: string;
  /** When it was revoked; absent: it was not. */
  revoked?: string;
}

/** Where a figure comes from; empty: there is none. */
export type Label =
  "measured" | "sampled" | "imagined" | "replayed" | "estimated" | "exact" | "computed" | "";

export interface Labels {
  /** What blocks are for, by their numbers. */
  categories: string[];
  /** Modules of the model, by their numbers. */
  modules: string[];
  /** Lines that allocate, by their numbers. */
  sites: SiteLabel[];
  /** Streams, by their numbers. */
  streams: string[];
}

export interface Left {
  /** Always true: who asks by a key or a token has no session to end. */
  ended: boolean;
}

export interface Levels {
  /** The same with blocks that wait for another stream, in bytes. */
  active_bytes: number;
  /** Bytes allocated. */
  allocated_bytes: number;
  /** Bytes that the program asked for; absent where the file knows blocks alone. */
  requested_bytes?: number;
  /** Bytes reserved; absent where the file does not tell. */
  reserved_bytes?: number;
}

export interface Limit {
  /** The largest batch. */
  batch: number;
  /** The least batch that ran out of memory. */
  failed?: number;
  /** More than so many do not; absent: not known. */
  high?: number;
  /** So many fit as far as is known. */
  low: number;
  /** How much that is, in bytes. */
  memory_bytes: number;
  /** Whose memory: device or machine. */
  of: string;
  /** Whether a batch that should fit did not. */
  refuted?: boolean;
  /** How many times the largest batch measured that is. */
  times: number;
  /** Whether memory was not seen to grow. */
  unlimited?: boolean;
}

export interface Line {
  /** Of the host's heap that was allocated there and is held. */
  bytes: number;
  /** Half the 95 % interval of that. */
  error_bytes: number;
  /** FILE:LINE. */
  place: string;
}

export interface Lines {
  /** The file, as the stack names it. */
  file: string;
  /** The number of the first line of text, from 1. */
  first: number;
  /** The line that was asked for, from 1. */
  line: number;
  /** The lines around it. */
  text: string[];
  /** Why there are none; absent: there are. */
  why?: string;
}

export interface ListEvent {
  /**
   * What the allocator did, as PyTorch names it: alloc, free_requested, segment_alloc and others.
   */
  action: string;
  /** Where, in hexadecimal. */
  address?: string;
  /** The number of the block that it allocates or frees; -1: none. */
  block: number;
  /** The number of the event in the trace, from 0. */
  number: number;
  /** Whether a filter leaves it out. */
  other?: boolean;
  /** The line that caused it. */
  place: SiteLabel;
  /** How much, in bytes. */
  size: number;
  /** The stream that it is of. */
  stream?: string;
  /** When, in ns since the first event. */
  time_ns?: number;
}

export interface Location {
  /** The file; of native code the library. */
  file: string;
  /** The function. */
  function?: string;
  /** The line, from 1; absent: not known. */
  line?: number;
  /** Whether it is native code, not Python. */
  native?: boolean;
}

export interface LongLife {
  /** The number of the event that allocated it; -1: before the trace. */
  allocated_event: number;
  /** How many blocks there are that nothing here tells apart. */
  blocks: number;
  /** The size of each block in bytes. */
  bytes: number;
  /** What the blocks are for. */
  category: string;
  /** The number of the event that freed it; null: alive at the end. */
  freed_event: number | null;
  /** How long it lived, in events. */
  life_events: number;
  /** How long it lived, in ns. */
  life_ns?: number;
  /** The site. */
  name: string;
}

export interface Machine {
  /** Its kernel. */
  kernel?: string;
  /** Its memory in bytes. */
  memory_bytes: number;
  /** Its name. */
  name: string;
  /** How many processors may be used. */
  processors: number;
}

export interface MadeShare {
  /** Put behind #share= of an address of the run on this server. It is told once. */
  secret: string;
  /** The link, as the list of them has it. */
  share: Share;
}

export interface Mark {
  /** alert, oom, exit, gap and so on. */
  kind: string;
  /** Id in the run; absent: of no single one. */
  process?: number;
  /** What happened. */
  text: string;
  /** Since the run began. */
  time_ns: number;
}

export interface MatrixAdvice {
  /** The places of the cells that it speaks of. */
  cells?: number[];
  /** Of which kind of axis it is, or item, room or repeats. */
  kind: string;
  /** What to make of it. */
  sentence: string;
}

export interface MatrixCell {
  /** framework=pytorch batch=16 and so on, in the order of the axes. */
  key: string;
  /** A value of each axis. */
  values: string[];
}

export interface MatrixCurve {
  /** What the form gives there. */
  fit: number[];
  /** The upper end. */
  high?: number[];
  /** The lower end of its interval; absent: not known. */
  low?: number[];
  /** Batches. */
  x: number[];
}

export interface MatrixList {
  /** The matrices, the last changed first. */
  matrices: MatrixRow[];
}

export interface MatrixPage {
  /** When it last changed, in ns since 1970. */
  changed_ns: number;
  /** The name of the matrix. */
  name: string;
  /** What its page draws: the axes, cells and figures as far as they were measured. */
  page: unknown;
  /** Whether it is being measured now. */
  running: boolean;
}

export interface MatrixPart {
  /** What the other held, in bytes. */
  base_bytes: number;
  /** What kind of part it is: line, part or category. */
  by: string;
  /** What the cell held, in bytes. */
  cell_bytes: number;
  /** Where that comes from. */
  label: Label;
  /** Its name. */
  name: string;
}

export interface MatrixRow {
  /** What its cells differ in. */
  axes: Axis[];
  /** How many combinations there are. */
  cells: number;
  /** When a trial was last kept, in ns since 1970. */
  changed_ns: number;
  /** The name of the matrix. */
  name: string;
  /** Why its journal cannot be read; absent: it can. */
  problem?: string;
  /** Whether it is being measured now. */
  running: boolean;
  /** When it was begun, in ns since 1970. */
  start_ns: number;
  /**
   * How many cells there are by what became of them; under the empty name, those that were not
   * tried yet.
   */
  states: Record<string, number>;
  /** How many trials were kept. */
  trials: number;
}

export interface MatrixSummary {
  /** How many samples there are. */
  count: number;
  /** How far the largest may be off, where it is estimated. */
  error?: number;
  /** Where they come from. */
  label: Label;
  /** The largest sample. */
  max: number;
  /** Their mean. */
  mean: number;
  /** Their median. */
  median: number;
  /** The smallest. */
  min: number;
  /** Their standard deviation. */
  std_dev: number;
}

export interface MatrixTrial {
  /** The key of its cell. */
  cell: string;
  /** How long it took, in ns. */
  duration_ns: number;
  /**
   * What was measured, by figure: rss, vms, pss, swap, allocated, reserved and device_used in
   * bytes, step_time in ns, cpu in thousandths of a processor, minor_faults, major_faults and
   * parameters as counts.
   */
  figures?: Record<string, MatrixSummary>;
  /** The name of the machine. */
  machine: string;
  /** Why it is not done, in a sentence. */
  reason?: string;
  /** Which repeat of the cell it is, from 1. */
  repeat: number;
  /** The id of its recording. */
  run?: string;
  /** When it began, in ns since 1970. */
  start_wall_ns: number;
  /** What became of it: done, failed, oom, timeout, unavailable or lost. */
  state: string;
}

export interface MemoryLimit {
  /**
   * Who held it to that: the kernel, in a control group of its own, or hightide, which looked at
   * every interval.
   */
  by: "kernel" | "watching";
  /** Where it was watched: the most that was seen of what the kernel cannot take back, in bytes. */
  highest_bytes?: number;
  /** What it and all that it started were allowed, in bytes. */
  limit_bytes: number;
  /**
   * How often the kernel found it at the limit. It took back pages of files each time, or ended a
   * process.
   */
  reached?: number;
  /**
   * ran: to its end; in part: so, but processes of it were killed for want of memory; stopped: it
   * stayed within the limit until it was stopped as asked; killed: for want of memory; failed: for
   * another reason, or one that is not known; unknown: its end was not seen.
   */
  verdict: "ran" | "in part" | "stopped" | "killed" | "failed" | "unknown";
  /** Why the kernel did not. */
  why?: string;
}

export interface MemoryMark {
  /** What that saves in a year, in USD; null: time was not measured. */
  cost_savings_annual: number | null;
  /** The batch in use now. */
  current_batch_size: number;
  /** The error of that estimate in GB; MemoryMark has no such field. */
  current_memory_error_gb?: number;
  /** What that takes, in GB; null: not known. */
  current_memory_gb: number | null;
  /** How that is known, where it is an estimate; MemoryMark has no such field. */
  current_memory_label?: Label;
  /** The device: cuda, or cpu where there is no GPU. */
  device: string;
  /** The device's memory in GB. */
  gpu_total_gb: number;
  /** The model. */
  model_name: string;
  /** The largest batch that fits. */
  optimal_batch_size: number;
  /** What it takes, in GB. */
  optimal_memory_gb: number;
  /** Its trials. */
  results: MemoryMarkSize[];
  /** How much faster the largest batch is; null: time was not measured. */
  speedup: number | null;
  /** What the batch in use leaves, in GB. */
  waste_gb: number;
  /** The same in percent of the device. */
  waste_percent: number;
}

export interface MemoryMarkSize {
  /** The batch. */
  batch_size: number;
  /** What it took, in GB; null: not known. */
  memory_gb: number | null;
  /** Whether it fits. */
  success: boolean;
}

export interface ModelInfo {
  /** What they take as stored, in bytes. */
  bytes: number;
  /** What a further token of a long sequence takes in the cache, all GPUs together, in bytes. */
  cache_bytes_per_token?: number;
  /** What a sequence of the length asked takes in the cache. */
  cache_per_sequence: Estimate;
  /** What the layers keep of a sequence, by kind. */
  caches: Cache[];
  /** The most tokens of a sequence. */
  context?: number;
  /** Numbers in them as stored: of a packed type several weights may share one. */
  elements: number;
  /** Files with weights. */
  files: number;
  /** safetensors, gguf, or config: no weights were read. */
  format: string;
  /** The architecture, as llama. */
  kind?: string;
  /** exact: read from the files; computed: from the configuration. */
  label: Label;
  /** As it was given. */
  name: string;
  /** What the files hold besides, in bytes. */
  not_loaded_bytes?: number;
  /** How the weights are packed, as the configuration says it. */
  quantization?: string;
  /** Where the files were: folder, file, cache or hub; sent: what of them is read was sent. */
  source: string;
  /** Tensors that are loaded. */
  tensors: number;
  /** The same by type, the largest first. */
  types: TypeInfo[];
}

export interface Moment {
  /** Bytes of blocks that are in use or wait for another stream. */
  active_bytes: number;
  /** The number of the event after which it is. */
  event: number;
  /** Bytes of all segments. */
  reserved_bytes: number;
  /** The segments, by address. */
  segments: ReplayMomentSegment[];
}

export interface MomentAnswer {
  /** Bytes of blocks that are allocated. */
  allocated: number;
  /** How many blocks are allocated. */
  blocks: number;
  /** The event just before; absent at point 0. */
  event?: Event;
  /** Whether the file tells of segments; else one stands for all blocks. */
  known: boolean;
  /** What the numbers of sites, categories, modules and streams stand for. */
  labels: Labels;
  /** The point: so many events were before. */
  point: number;
  /** What the program asked for of these blocks, before rounding, in bytes. */
  requested: number;
  /** Bytes of all segments. */
  reserved: number;
  /** How many segments are left out for want of room: the smallest. */
  rest: number;
  /** The segments, by address. */
  segments: MomentSegment[];
  /** Bytes freed by the program that another stream still uses. */
  waiting: number;
}

export interface MomentSegment {
  /** Where it begins, in hexadecimal. */
  address: string;
  /** Whether it is an expandable segment. */
  expandable?: boolean;
  /** Whether it serves large requests. */
  large?: boolean;
  /**
   * Parts that are not free, by address: offset and size in bytes, the block's number, and the
   * number of what was asked for; -2: a filter leaves it out. A part that stands for several
   * neighbours has -1 less their number, then -1.
   */
  parts: [number, number, number, number][];
  /** Its size in bytes. */
  size: number;
  /** The stream that it belongs to. */
  stream: string;
  /** Bytes of it that are not free. */
  used: number;
}

export interface Named {
  /** What is held; of what is oversized: what was never taken. */
  bytes: number;
  /** For how long; of a leak: until there is no room, by its slope. */
  for_ns?: number;
  /** Its job; absent: none. */
  job?: string;
  /** Of a leak: the least time that its error allows. */
  least_ns?: number;
  /** Where it is. */
  machine: string;
  /** Of a leak: the most; absent: its error allows that it ends never. */
  most_ns?: number;
  /** Of what is oversized: what was reserved. */
  of_bytes?: number;
  /** Whose it is. */
  person: string;
  /** The process; absent: it is a job's. */
  pid?: number;
  /** Its command, or that of the largest process of the job. */
  program: string;
  /** The run that hightide records of it. */
  run?: string;
  /** The same as a sentence. */
  text: string;
  /** Of which memory: the host's, or the device. */
  what: string;
}

export interface NewJobInputBody {
  /** What is to be done. */
  kind: "imagine" | "fit" | "tune" | "bench" | "search" | "explain";
  /** Of the kind. */
  options: unknown;
}

export interface NextEvent {
  /** The number of the event; -1: there is none. */
  event: number;
}

export interface Node {
  /**
   * It was not heard of for three of its intervals: what it holds now is not known, and is in no
   * sum.
   */
  away?: boolean;
  /** When it was last heard of, by the server's clock. */
  heard_unix_ns: number;
  /** The account of its key. */
  name: string;
  /** What it held then. */
  state: FleetState;
}

export interface OnCard {
  /** What it holds. */
  bytes: number;
  /** As nvidia:0. */
  device: string;
}

export interface OpenedDevice {
  /** That its trace tells of, with those from before it. */
  blocks: number;
  /** Its number, as requests have it. */
  device: number;
  /** Of the trace, where it has times. */
  duration_ns?: number;
  /** Of its trace. */
  events: number;
  /** What the device is called, where the file says it. */
  name?: string;
  /** The point of the peak: so many events before. */
  peak_at: number;
  /** Most that was allocated. */
  peak_bytes: number;
  /** Most that was reserved. */
  peak_reserved_bytes: number;
}

export interface OpenedSnapshot {
  /** Once it is ready. */
  devices: OpenedDevice[];
  /** Where it is from. */
  from: "file" | "upload" | "run";
  /** What requests call it. */
  id: string;
  /** Of the file, or what the sender called it. */
  name: string;
  /** Why it failed, and what to do. */
  problem?: string;
  /** The run that recorded it. */
  run?: string;
  /** Of the file. */
  size_bytes?: number;
  /** What has become of it. */
  state: "known" | "reading" | "ready" | "failed";
}

export interface Output {
  /** Where the text begins, in bytes from the start. */
  at: number;
  /**
   * Where it ends. Bytes that are not UTF-8 are replaced in the text, so its own length does not
   * tell.
   */
  next: number;
  /** Bytes that are there by now. */
  size: number;
  /** What the program printed. */
  text: string;
}

export interface OutputRows {
  /** Where each block begins, in bytes. */
  at: number[];
  /** The number of the first block told. */
  from: number;
  /** The last row there is at its end. */
  high: number[];
  /** The first row that it writes to: a program may go back up. */
  low: number[];
  /** Nothing is kept of it, so far: hightide run --capture keeps it. */
  missing?: boolean;
  /** In which row. */
  row: number[];
  /** Rows up to there. A progress bar that writes over itself is one. */
  rows: number;
  /** Bytes whose rows are counted. Where there are more, ask again for the rest. */
  seen: number;
  /** Bytes that are there by now. */
  size: number;
  /**
   * By the number of a block: the sequences that set the colours it begins with. Without one it has
   * none.
   */
  styles: Record<string, string>;
}

export interface Overview {
  /** What was reserved and not used, by month and project. */
  costs: Waste[];
  /** Who holds memory and does nothing, the most first. */
  idle: Named[];
  /** What each job holds, the most first; processes of no job are not in it. */
  jobs: FleetHolding[];
  /** What grows steadily, who runs out first first. */
  leaks: Named[];
  /** Those that were ever heard of, by name. */
  machines: Node[];
  /** What is not known, and why. */
  notes: string[];
  /** Who reserved far more than it ever took, the most first. */
  oversized: Named[];
  /** What each person's processes hold, the most first. */
  people: FleetHolding[];
  /** When it was made. */
  time_unix_ns: number;
  /** Of this form: 1. */
  version: number;
}

export interface Pair {
  /** The place of the other. */
  base: number;
  /** The place of the cell in cells. */
  cell: number;
  /** Its 95 % interval; absent: not known. */
  interval?: Interval;
  /** Their ratio. */
  ratio: number;
  /** What the interval allows to say: more, less, same or unknown. */
  verdict: string;
}

export interface Part {
  /** Where in the file it begins, in bytes. */
  at_bytes: number;
  /** The SHA-256 of it, in hexadecimal. */
  sha256: string;
}

export interface Patch {
  /** Whether the allocator's peak was that of the plan's run, to the byte. */
  as_planned: boolean;
  /** Where it was written. */
  file?: string;
  /** Where git apply or patch -p1 takes it. */
  folder: string;
  /** Levers of the plan that it does not have, and why. */
  not_written?: Record<string, string>;
  /**
   * The plan that it writes: the recommended one, or the cheapest that reaches the goal and can be
   * written whole.
   */
  plan: Plan;
  /** Why there is no diff. */
  problem?: string;
  /** What it does beside the plan, in words, or why it is not shown. */
  says: string;
  /** The unified diff; absent: nothing could be written, or the changed copy did not run. */
  text?: string;
  /** What came of the imagined run of the changed copy, without a plan. */
  verdict?: GPUVerdict;
}

export interface Peak {
  /** The highest of what frameworks' allocators gave, in bytes. */
  allocated_bytes?: number;
  /** Whether processes that lived very shortly may have taken more between two readings. */
  at_least?: boolean;
  /** The highest use of each device, summed, in bytes. */
  device_used_bytes?: number;
  /** The highest live heap, sampled, of all processes, in bytes. */
  heap_bytes?: number;
  /** The same with shared pages counted once, in bytes: estimated between readings. */
  host_pss_bytes?: number;
  /** How far that may be off to either side, in bytes. */
  host_pss_error_bytes?: number;
  /** The highest resident memory of the process tree, in bytes. */
  host_rss_bytes?: number;
  /** Where the figures come from. */
  label: Label;
  /** The phase in which that was. */
  phase?: string;
  /** The process, by its id in the run. */
  process?: number;
  /** The highest of what they took from the devices, in bytes. */
  reserved_bytes?: number;
  /** How many steps were completed before. */
  step?: number;
  /** When the leading figure was highest, in ns since the run began. */
  time_ns?: number;
}

export interface Person {
  /** The account with its password's age; absent: none with a password. */
  account?: Account;
  /** Lines of the log in which the name stands. Addresses of others are left out. */
  acts: Act[];
  /** What the person said of runs. */
  comments: PersonComment[];
  /** Keys of the account, without their secrets. */
  keys: Key[];
  /** The account. */
  name: string;
  /** What the person reserved on machines, by month. */
  reserved: PersonMonth[];
  /** Runs that the person's keys sent to a server. */
  runs: Run[];
  /** How many more of them are in projects that who asks does not see; absent: none. */
  runs_not_seen?: number;
  /** Links that the person made. */
  shares: Share[];
  /**
   * Users of machines of that name, who wrote comments with the database's password and need not be
   * that person.
   */
  users: string[];
  /** Of this form: 1. */
  version: number;
}

export interface PersonComment {
  /** The comment, as it is kept. */
  comment: unknown;
  /** The id of the run. */
  run: string;
}

export interface PersonMonth {
  /** The name of the GPU; empty: memory of the host. */
  gpu: string;
  /** How long a GPU was held, in ms. */
  held_ms: number;
  /** How long of that its holder did nothing, in ms. */
  idle_ms: number;
  /** The account of the machine. */
  machine: string;
  /** As 2026-01. */
  month: string;
  /** The project; empty: none. */
  project: string;
  /** What was reserved of the host, in MiB times seconds. */
  reserved_mib_s: number;
  /** What of that was not used, in MiB times seconds. */
  unused_mib_s: number;
}

export interface PhaseBar {
  /** Since the run began. */
  end_ns: number;
  /** Of a module, or of a span of the program. */
  name?: string;
  /** forward, backward, optimizer and so on. */
  phase: string;
  /** Id in the run. */
  process: number;
  /** Of spans that the program named: the highest reading. */
  rss_peak_bytes?: number;
  /** Since the run began. */
  start_ns: number;
  /** 0: before the first. */
  step: number;
}

export interface Pin {
  /** How many blocks there are. */
  blocks: number;
  /** The size of its blocks in bytes. */
  bytes: number;
  /** The stack of the block that pins most, innermost first; null: not recorded. */
  frames: Location[] | null;
  /** The site. */
  name: string;
  /** Bytes cached in the segments where these blocks are the largest. */
  pinned_bytes: number;
}

export interface Plan {
  /** The command that it was made for. */
  command?: string;
  /** The GPU that it was made for. */
  gpu?: string;
  /** The levers by name. */
  levers: Record<string, Settings>;
  /** The class of the model; another one is refused. */
  model?: string;
  /** How many numbers the model's parameters have; another model is refused. */
  parameters?: number;
  /** What the imagined run with this plan took. */
  planned?: Figures;
  /** The version of this form. */
  version: number;
}

export interface PlanAnswer {
  /** What would let a cheaper GPU do, or where none fits, a GPU at all: each was computed. */
  changes: Alternative[];
  /**
   * The GPU, or the machine, with the lowest known price among those that fit; absent: none does.
   */
  cheapest?: string;
  /** What the files say. */
  model: ModelInfo;
  /** What was assumed, and what is not known. */
  notes: string[];
  /** A GPU each: those that fit first, the cheapest first. */
  rows: Row[];
  /** The one with the least memory among those that fit. */
  smallest?: string;
  /** The same in words. */
  told: PlanTold;
  /** What was asked. */
  use: Use;
  /** The version of this form. */
  version: number;
  /** Whether only the weights are known, and nothing else is counted. */
  weights_alone?: boolean;
}

/**
 * Which GPUs serve, run or train a model. The model is named by `model`, or sent: `config`,
 * `files`.
 */
export interface PlanOptions {
  /** number of sequences in a batch on each GPU, of other uses (default 1) */
  batch?: number;
  /** A config.json of Hugging Face, as it is. */
  config?: unknown;
  /** type of the weights: auto (as stored), bf16, fp16, fp32, fp8 or int4 (default auto) */
  dtype?: "auto" | "bf16" | "fp16" | "fp32" | "fp8" | "int4";
  /** Files of safetensors or GGUF: their headers alone. */
  files?: SentFile[];
  /** use: serve, infer, full, lora, qlora, dpo or grpo (default serve) */
  for?: "serve" | "infer" | "full" | "lora" | "qlora" | "dpo" | "grpo";
  /** names of GPUs, as hightide gpus lists them, separated by commas; or all (the default) */
  gpu?: string[];
  /** number of GPUs that hold it together (default 1) */
  gpus?: number;
  /**
   * plan with machines that clouds rent, their host memory and prices, in place of GPUs; with gpus
   * so many of theirs
   */
  instances?: boolean;
  /** type of the cache: auto (16 bits) or fp8 (default auto) */
  kv_dtype?: "auto" | "fp8";
  /** rank of the adapters (default 16) */
  lora_rank?: number;
  /**
   * a folder or file: config.json, safetensors, GGUF, ONNX, TFLite, pt2, pte; or a name of the
   * Hugging Face hub
   */
  model?: string;
  /** How to call the model that is sent. */
  name?: string;
  /** keep all activations for the backward pass */
  no_checkpointing?: boolean;
  /** ask no hub: files and the local cache alone */
  offline?: boolean;
  /** name of the optimizer: adamw, adamw-8bit or sgd (default adamw) */
  optimizer?: "adamw" | "adamw-8bit" | "sgd";
  /** tokens of a sequence, prompt and answer together (default 4096, or what the model has) */
  seq?: number;
  /** number of sequences that a server holds at once (default 1) */
  users?: number;
  /** part of a GPU's memory that the server takes (default 0.9; vLLM 0.33 takes 0.92 by itself) */
  utilization?: number;
}

export interface PlanRange {
  /** The figure. */
  figure: number;
  /** The most. */
  high: number;
  /** The least. */
  low: number;
}

export interface PlanResult {
  /** What would let a cheaper GPU do, or where none fits, a GPU at all: each was computed. */
  changes: Alternative[];
  /**
   * The GPU, or the machine, with the lowest known price among those that fit; absent: none does.
   */
  cheapest?: string;
  /** What the files say. */
  model: ModelInfo;
  /** What was assumed, and what is not known. */
  notes: string[];
  /** A GPU each: those that fit first, the cheapest first. */
  rows: Row[];
  /** The one with the least memory among those that fit. */
  smallest?: string;
  /** What was asked. */
  use: Use;
  /** The version of this form. */
  version: number;
  /** Whether only the weights are known, and nothing else is counted. */
  weights_alone?: boolean;
}

export interface PlanTold {
  /** The answer, in a sentence. */
  answer: string;
  /** The model, in a sentence. */
  model: string;
  /** What takes memory on the GPU that the answer is about; absent: there is no GPU. */
  parts?: Table;
  /** What would be cheaper, and what was assumed. */
  remarks: string[];
  /** The rows. */
  table: Table;
}

export interface Point {
  /**
   * With the goal headroom, where the run itself left less free: it ran in so much memory too, as
   * the allocator gives back what it keeps idle.
   */
  also_runs_in_bytes?: number;
  /** What it costs, in words. */
  costs: string;
  /**
   * Memory over the step in which its run was fullest; absent: memory ran out, or the program is
   * several processes.
   */
  curve?: StepCurve;
  /**
   * With --host-memory: the highest PSS of all processes, as far as the run went, in bytes; absent:
   * that was not looked at.
   */
  host_pss_bytes?: number;
  /** How far that may be off to either side, in bytes. */
  host_pss_error_bytes?: number;
  /** What becomes of losses and gradients, in words. */
  numbers: string;
  /** Losses and gradients stay the same bit for bit. */
  numbers_stay: boolean;
  /** No other plan that ran takes less at no more cost. */
  on_frontier: boolean;
  /** The plan. */
  plan: Plan;
  /** The text of its plan, as hightide run --plan reads it. */
  plan_file: string;
  /** Whether that reaches the goal. */
  reaches_goal: boolean;
  /** It is the one that is recommended. */
  recommended: boolean;
  /** What came of the imagined run with it. */
  verdict: GPUVerdict;
  /** What it changes, in words. */
  what: string;
}

export interface Policy {
  /** How often it ran. */
  count: number;
  /** The largest size that was given, in elements. */
  elements?: number;
  /** The file; empty: no line of the program was running. */
  file: string;
  /** The line, from 1. */
  line: number;
  /** The operation whose result has a size that depends on data. */
  op: string;
  /** What was taken for it: upper, zero, or a fraction. */
  policy: string;
}

export interface Portion {
  /** Where the figure comes from, and what is assumed. */
  basis: string;
  /** The figure, in bytes. */
  bytes: number;
  /** The most, in bytes. */
  high_bytes: number;
  /** exact, computed or estimated. */
  label: Label;
  /** The least, in bytes. */
  low_bytes: number;
  /** What it is. */
  name: string;
}

export interface Probe {
  /** How many samples a batch has. */
  batch: number;
  /** Whether one of these plans fits. */
  fits: boolean;
  /** The least that one of them takes of the device, in bytes; absent: none ran to its end. */
  least_used_bytes?: number;
  /** That plan, in words. */
  what?: string;
}

export interface Process {
  /**
   * When its interpreter began to end in good order, in ns on the machine's monotonic clock: from
   * then on it frees everything.
   */
  bye_mono_ns?: number;
  /** Its arguments, with secrets masked. */
  command?: string[];
  /** When it ended, in ns on the machine's monotonic clock; absent: its end was not seen. */
  end_mono_ns?: number;
  /** Its exit code; absent where a signal ended it or its end was not seen. */
  exit_code?: number;
  /** What else was observed of it, by name, in words. */
  facts?: Record<string, string>;
  /** The versions of its frameworks, by name. */
  frameworks?: Record<string, string>;
  /**
   * How many bytes of its heap were allocated between two samples, on average; absent: it was not
   * sampled.
   */
  heap_mean_bytes?: number;
  /** Its id in the run. */
  id: number;
  /** Its rank among those of its machine. */
  local_rank?: number;
  /** The kernel's own mark of its highest resident memory (VmHWM or ru_maxrss), in bytes. */
  maxrss_bytes?: number;
  /** As facts, of integers: bytes, ns and counts, by what they are of. */
  numbers?: Record<string, number>;
  /** The id in the run of its parent; absent: the parent is not in the run. */
  parent?: number;
  /**
   * The kernel's mark of what it had resident before the recording, in bytes; absent: it began in
   * it.
   */
  peak_before_bytes?: number;
  /** Its id on the machine. */
  pid: number;
  /** The version of its Python. */
  python?: string;
  /** Its rank among all processes of a distributed program. */
  rank?: number;
  /** What it is in the run: main, rank, dataloader, launcher, child and others. */
  role?: string;
  /** The signal that ended it. */
  signal?: number;
  /** When it began, in ns on the machine's monotonic clock. */
  start_mono_ns: number;
  /** When it began, in clock ticks since the machine was started. */
  start_ticks?: number;
  /** How many ranks the program has. */
  world_size?: number;
}

export interface ProjectInfo {
  /** Its name. */
  name: string;
  /** What is taken out of a run before it is sent into it. */
  redact: Rules;
  /** What who asks may do in it. */
  role: "viewer" | "member" | "admin";
}

export interface ProjectList {
  /** By name. Who administers the server is in all. */
  projects: ProjectInfo[];
}

export interface PullComment {
  /** What it is held against; absent: it is the first commit, and none was named. */
  base?: Commit;
  /** Whether the base was named; false: it is the commit before in the trend. */
  base_named: boolean;
  /** The run that was named in place of the base's commit; absent: all runs of it count. */
  base_run?: string;
  /** What it is about, with its change, noise and verdict against base. */
  commit: Commit;
  /** How many commits the trend has. */
  commits: number;
  /** The means of the newest commits of the trend, at most 60, as one line of text. */
  curve: string;
  /** The lines that held most in a run of it; empty: not known. */
  held: CommentLine[];
  /** The same of a run of the base. */
  held_by_base: CommentLine[];
  /** Where it comes from: measured or imagined. */
  label: string;
  /** Which runs of the trend say nothing here, and why. */
  left_out: string[];
  /** What the pull request is told. */
  markdown: string;
  /** Why the noise of the change is not known; absent: it is, or there is no change. */
  noise_unknown?: string;
  /** What the trend is of, as peak or growth. */
  of: string;
  /** The run that was named in place of a commit; absent: all runs of the commit count. */
  run?: string;
  /** What the trend is of, as the address of its page asks for it. */
  trend: string;
  /** Of this form: 1. */
  version: number;
  /** The figure, as PSS. */
  what: string;
}

export interface Range {
  /** The most, in bytes. */
  high: number;
  /** The least, in bytes. */
  low: number;
}

export interface Rank {
  /**
   * How long after the first rank it comes to where ranks wait for each other, in a step: the
   * median, in ns.
   */
  behind_ns?: number;
  /** Growth of its use of the device in bytes a step; 0: looked for and not there. */
  device_growth_bytes_per_step?: number;
  /** Half the 95 % interval of that, in bytes. */
  device_growth_error_bytes?: number;
  /** Where the figures of the device come from: measured or imagined. */
  device_label: Label;
  /** When it failed, in ns since the run began. */
  failed_ns?: number;
  /** Growth of its resident memory in bytes a step; 0: looked for and not there. */
  growth_bytes_per_step?: number;
  /** Half the 95 % interval of that, in bytes. */
  growth_error_bytes?: number;
  /** Its highest resident memory up to the end of the first step, in bytes. */
  loading_bytes?: number;
  /** The highest of what its allocator gave, in bytes. */
  peak_allocated_bytes?: number;
  /** Its highest use of the device, as the driver tells it, in bytes. */
  peak_device_bytes?: number;
  /** The highest of what its allocator took from the device, in bytes. */
  peak_reserved_bytes?: number;
  /** Its highest resident memory in bytes. */
  peak_rss_bytes?: number;
  /** The process, by its id in the run. */
  process: number;
  /** Its rank. */
  rank: number;
  /** The median of a step's time in ns. */
  step_time_ns?: number;
  /** How many optimizer steps it completed. */
  steps: number;
  /** How long it waits there for the last rank: the median, in ns. */
  waiting_ns?: number;
  /** Half the 95 % interval of that, in ns. */
  work_error_ns?: number;
  /**
   * The median of what it spends in data and forward of a step, in ns, where no other rank is
   * waited for.
   */
  work_ns?: number;
}

export interface RankUse {
  /** The device, as the framework calls it. */
  device: string;
  /** The number of the device on the machine. */
  index: number;
  /** What the program calls the rank, as TP1. */
  name?: string;
  /** What that is made of beside the allocator, by name, in bytes. */
  parts_bytes?: Record<string, number>;
  /** The highest of what its allocator gave, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest of what its allocator took from the device, in bytes. */
  peak_reserved_bytes?: number;
  /** The highest use of the device by the process, in bytes. */
  peak_used_bytes: number;
  /** Whether it ran alone, without the other ranks. */
  played?: boolean;
  /** The process, by its id in the run. */
  process: number;
  /** Its rank; absent: the program is not distributed. */
  rank?: number;
  /** How many ranks the program has. */
  world_size?: number;
}

export interface Ranks {
  /** What was not compared, and why. */
  not_compared?: string[];
  /** The ranks by number. */
  ranks: Rank[];
  /** Who differs from the others, the likeliest first cause first. */
  suspects: Suspect[];
}

export interface Ratio {
  /** The axis. */
  axis: string;
  /** The value that it is compared with. */
  base: string;
  /** That of the base, which is another one where host and device are compared. */
  base_figure: string;
  /** The figure of the value. */
  figure: string;
  /** Its 95 % interval; absent: not known. */
  interval?: Interval;
  /** What the axis is: framework, model, batch, device, mode, sequence, or axis. */
  kind: string;
  /** The least of the pairs' ratios. */
  least: number;
  /** Pairs that are not in it: one side was not measured, or only once. */
  left: number;
  /** How many have that one. */
  less: number;
  /** How many of them have that verdict. */
  more: number;
  /** The most. */
  most: number;
  /** Of the leading figures: the pairs. */
  of?: Pair[];
  /** How many pairs of cells differ in nothing else. */
  pairs: number;
  /** The geometric mean over the pairs. */
  ratio: number;
  /** How many have that one. */
  same: number;
  /** The same in words. */
  sentence: string;
  /** Both for people. */
  title: string;
  /** Its value that is compared. */
  value: string;
  /** What the interval allows to say: more, less, same or unknown. */
  verdict: string;
}

export interface ReadBack {
  /** How much it read, in bytes. */
  bytes: number;
  /**
   * A line that raises unless the number passes, in the file of the function that checks it; which
   * number passes is not known.
   */
  check_line?: number;
  /** How often it read. */
  count: number;
  /** The file. */
  file: string;
  /** Its function. */
  function?: string;
  /** The line, from 1. */
  line: number;
}

export interface Ready {
  /** What its build has kernels for, as sm_80 sm_90. */
  arch_list?: string;
  /** The CUDA version that it was built with. */
  cuda?: string;
  /** What it is, for people. */
  description?: string;
  /** The device as the framework calls it. */
  device?: string;
  /** What to do about that. */
  hint?: string;
  /** The name of the model; absent: it is a command. */
  model?: string;
  /** How many parameters it has. */
  parameters?: number;
  /** Why nothing can be measured. */
  problem?: string;
  /** The interpreter. */
  python?: string;
  /** Versions by package. */
  versions?: Record<string, string>;
}

export interface Regression {
  /** What became of each figure of each cell, worst first. */
  changes: Change[];
  /** How many there are by standing. */
  counts: Record<string, number>;
  /** How much more is allowed, as a part, by figure. */
  fail_over: Record<string, number>;
  /** Of every interval: 0.95. */
  level: number;
  /** The name of the matrix. */
  name: string;
  /** What else is to be known, as of another machine. */
  notes: string[];
  /** The version of this form. */
  version: number;
}

export interface Rental {
  /** GPUs in it. */
  gpus: number;
  /** What the processes take of it. */
  host: Portion;
  /** Memory of the host, in bytes. */
  host_bytes: number;
  /** As its provider calls it. */
  instance: string;
  /** What else is to be known of it. */
  notes?: string;
  /** Who rents it. */
  provider: string;
  /** Virtual processors. */
  vcpus: number;
}

export interface ReplayFigures {
  /** The allocator's settings, as PYTORCH_ALLOC_CONF has them. */
  alloc_conf: string;
  /** How often it emptied its cache because the device had no more. */
  alloc_retries: number;
  /** The number of the event that found no memory; null: none. */
  oom: number | null;
  /** What that asked for, in bytes. */
  oom_bytes?: number;
  /** Whether the memory would have been enough in one piece. */
  oom_fragmented?: boolean;
  /** The highest of what it gave, in bytes. */
  peak_allocated_bytes: number;
  /** The highest of what the allocator took from the device, in bytes. */
  peak_reserved_bytes: number;
  /** The model of the allocator, where it is not PyTorch's native one. */
  policy_name?: string;
  /** How many requests found no memory, as in the record. */
  refused?: number;
  /** How often it asked the device for memory or gave some back. */
  segment_calls: number;
}

export interface ReplayGPU {
  /** The allocator's settings, as PYTORCH_ALLOC_CONF has them. */
  alloc_conf: string;
  /** How often it emptied its cache because the device had no more. */
  alloc_retries: number;
  /** What the allocator can have there, in bytes. */
  capacity_bytes: number;
  /** Whether the requests fit. */
  fits: boolean;
  /** The short name in the catalogue. */
  gpu: string;
  /** The number of the event that found no memory; null: none. */
  oom: number | null;
  /** What that asked for, in bytes. */
  oom_bytes?: number;
  /** Whether the memory would have been enough in one piece. */
  oom_fragmented?: boolean;
  /** The highest of what it gave, in bytes. */
  peak_allocated_bytes: number;
  /** The highest of what the allocator took from the device, in bytes. */
  peak_reserved_bytes: number;
  /** The model of the allocator, where it is not PyTorch's native one. */
  policy_name?: string;
  /** A price in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** How many requests found no memory, as in the record. */
  refused?: number;
  /** How often it asked the device for memory or gave some back. */
  segment_calls: number;
}

export interface ReplayMomentSegment {
  /**
   * By address, without gaps: size in bytes; 0 cached, 1 in use, 2 waiting for another stream; the
   * event that allocated it, -1: none of the trace, -2: it stands for several small neighbours; the
   * number of its category.
   */
  blocks: [number, number, number, number][];
  /** Whether it is an expandable segment. */
  expandable?: boolean;
  /** Whether it serves large requests. */
  large?: boolean;
  /** Whether it is of a graph's or a user's pool. */
  private?: boolean;
  /** Its size in bytes. */
  size_bytes: number;
  /** The stream that it belongs to. */
  stream?: number;
}

export interface ReplayResult {
  /** Choices between equal blocks whose segments are of an age that the trace does not hold. */
  addresses_ambiguous: number;
  /** How many lie where the record has them. */
  addresses_exact: number;
  /** Of these, those that were not as assumed; they count as exact. */
  addresses_realigned: number;
  /** How many allocations there are. */
  addresses_total: number;
  /** The allocator's settings, as PYTORCH_ALLOC_CONF has them. */
  alloc_conf: string;
  /** How often it emptied its cache because the device had no more. */
  alloc_retries: number;
  /** The best settings; absent: none is at least as good as the record. */
  best?: Best;
  /** What the allocator can have, in bytes; absent: no limit is known. */
  capacity_bytes?: number;
  /** The number of the device in the file. */
  device: number;
  /** The file. */
  file: string;
  /**
   * Of several files: each of them. At the top counts of addresses and segments are sums, other
   * figures the highest.
   */
  files?: ReplayResult[];
  /** The first difference, for people. */
  first_mismatch?: string;
  /** Of a search: the default settings from a fresh start. */
  fresh?: ReplayFigures;
  /** The least and the most that those reserve, in bytes, as addresses turn out. */
  fresh_spread_bytes?: [number, number];
  /** Whether it began with an empty cache, as --fresh asks. */
  fresh_start?: boolean;
  /** Of --gpu all: GPUs, smallest first. */
  gpus?: ReplayGPU[];
  /** replayed; estimated where the trace does not verify, and of policies other than native. */
  label: Label;
  /** What else is to be known, for people. */
  notes: string[];
  /** The number of the event that found no memory; null: none. */
  oom: number | null;
  /** What that asked for, in bytes. */
  oom_bytes?: number;
  /** Whether the memory would have been enough in one piece. */
  oom_fragmented?: boolean;
  /** The highest of what it gave, in bytes. */
  peak_allocated_bytes: number;
  /** The highest of what the allocator took from the device, in bytes. */
  peak_reserved_bytes: number;
  /**
   * The lowest and highest peak, in bytes, with ascending and descending addresses and ties by age.
   */
  peak_reserved_spread_bytes: [number, number];
  /** Of --compare: each model of an allocator. */
  policies?: ReplayFigures[];
  /** The model of the allocator. */
  policy: string;
  /** The figures of the record. */
  recorded: ReplayFigures;
  /** How many requests found no memory, as in the record. */
  refused?: number;
  /** Settings that were tried, best first; those that lead to the same stand once. */
  search?: ReplayFigures[];
  /** How much was searched. */
  searched?: Searched;
  /** How often it asked the device for memory or gave some back. */
  segment_calls: number;
  /** How many are as recorded. */
  segments_exact: number;
  /** How many calls for segments there are. */
  segments_total: number;
  /** The version of PyTorch whose rules apply. */
  torch: string;
  /** Whether memory runs out; absent: it is not short, and no limit was asked for. */
  verdict?: ReplayVerdict;
  /** What verifying gave; the same fields stand at the top. */
  verified?: Agreement;
  /** The version of this form. */
  version: number;
}

export interface ReplayVerdict {
  /** The event that found no memory; where it is avoided, the one of the record. */
  event?: number;
  /**
   * What became of the requests: depends, where only some orders of addresses have memory run out;
   * avoided, where every request is served that the record refused; fits, in the memory asked for.
   */
  outcome: "out of memory" | "depends" | "avoided" | "fits";
  /**
   * What the allocator could still have taken at its highest, in bytes; absent where it runs out,
   * or no limit is known.
   */
  spare_bytes?: number;
  /** The same in words. */
  text: string;
}

export interface Report {
  /** What there is to say of each device of each snapshot. */
  allocators?: Allocator[];
  /** Records that were lost on the way. */
  dropped: number;
  /** What was found, worst first. */
  findings: Finding[];
  /** What it came to. */
  headline: Headline;
  /** Which lines held the heap at its highest, as the table sites shows it. */
  heap_lines?: HoldingLines;
  /** Of a run on imaginary GPUs: whether it fits. */
  imagined?: Imagined;
  /** Events worth a line on the timeline. */
  marks: Mark[];
  /** Of a program that was allowed so much host memory: whether it ran in that. */
  memory_limit?: MemoryLimit;
  /** What was not observed and why, how it was sampled, and damage. */
  notes: string[];
  /** What the processes held at the peak, as the table composition shows it. */
  peak_parts?: Holding[];
  /** Stays in phases for the timeline: an even selection, never more than a few thousand. */
  phases: PhaseBar[];
  /** The processes of the run. */
  processes: Process[];
  /** Of a distributed program: its processes beside each other. */
  ranks?: Ranks;
  /** What was recorded, where and how. */
  run: RunInfo;
  /** Curves. */
  series: Series[];
  /** Memory by whole call stack, for flame graphs. */
  stacks: StackSet[];
  /** Memory at the end of steps: an even selection. */
  steps: StepPoint[];
  /** Figures in rows. */
  tables: Table[];
  /** The version of this form. */
  version: number;
}

export interface Rising {
  /** Whether it is what is held between steps that rises, still below the peak. */
  kept?: boolean;
  /** By how much with each step, in bytes. */
  per_step_bytes: number;
  /**
   * In how many steps from the first memory runs out at that rate, at least; absent: headroom is
   * not known.
   */
  steps_least?: number;
  /** The same at most. */
  steps_most?: number;
}

export interface RoundingWaste {
  /** How many blocks there are. */
  blocks: number;
  /** The site. */
  name: string;
  /** Bytes that rounding adds to its blocks. */
  waste_bytes: number;
}

export interface Row {
  /** Of other uses: the largest batch on each GPU; low: at the upper ends of the estimates. */
  batch?: PlanRange;
  /** Of that, what may be taken. */
  budget: Estimate;
  /** Of a server: what all users' sequences take in the cache. */
  cache?: Estimate;
  /** Of an imagined row: what was estimated before the run. */
  estimated?: Guess;
  /** Its short name. */
  gpu: string;
  /** How many are used together. */
  gpus: number;
  /** estimated; imagined: the use was run on this GPU, which is not there. */
  label: Label;
  /** With --instances: the machine that has them. */
  machine?: Rental;
  /** Its full name. */
  name: string;
  /** What stands against it besides memory. */
  note?: string;
  /** What takes memory on one GPU, but a server's cache. */
  parts: Portion[];
  /** Of which day the price is. */
  price_date?: string;
  /** Whose price it is. */
  price_source?: string;
  /** Of all GPUs together in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** What is left of the budget; negative: what is missing. */
  room: Estimate;
  /** Of a server: tokens that the cache holds, where each sequence has the length asked. */
  tokens?: PlanRange;
  /** The memory of one GPU, in bytes. */
  total_bytes: number;
  /** Of a server: sequences of that length at once. */
  users?: PlanRange;
  /** fits, likely, unlikely or no, by the room that is left. */
  verdict: string;
}

export interface Rules {
  /** Names of variables of the environment whose values are taken out; * stands for any letters. */
  env?: string[];
  /** Whether names of machines are. */
  hosts?: boolean;
  /** Folders whose paths are; ~ is the home of who sends. */
  paths?: string[];
  /** Regular expressions; what they match is. */
  text?: string[];
}

export interface Run {
  /** Words of the command that was recorded. */
  command?: string[];
  /** A part of the recording cannot be read. */
  damaged?: boolean;
  /** Its folder on the machine of the server, for people. */
  dir?: string;
  /** Records that were lost on the way into the recording. */
  dropped: number;
  /** Up to the last thing seen. */
  duration_ns: number;
  /** How it ended, as its report says it. */
  ended: Ending;
  /** Of the main process; absent: not seen, or a signal ended it. */
  exit_code?: number;
  /**
   * The one figure by which it is known: the peak that its report leads with. Absent: none was
   * observed.
   */
  figure?: Figure;
  /**
   * What its report says besides, of which trends are made, by name: growth, fragmentation. Absent:
   * none is known.
   */
  figures?: Record<string, Figure>;
  /** Its recording there, for people. */
  file?: string;
  /** How many the report had that was made at its end; absent: none was made. */
  findings?: number;
  /** Of a recording outside the data directory. */
  from?: "file" | "upload";
  /** The commit that was checked out where the program began; absent: none is known. */
  git_commit?: string;
  /** Whether files differed from that commit. */
  git_dirty?: boolean;
  /** Name of the machine. */
  host?: string;
  /** What requests call it. */
  id: string;
  /** Where its figures come from: measured or imagined. */
  label?: Label;
  /** As run --name or a change of it says; need not be unique. */
  name?: string;
  /** How often memory ran out. */
  ooms: number;
  /**
   * Most that frameworks had handed out on devices: of each allocator its peak, added up. Of an
   * imagined run as its verdict has it.
   */
  peak_allocated_bytes?: number;
  /** Most memory in use on devices: of each its peak, added up. */
  peak_device_used_bytes?: number;
  /** The same with shared pages divided by their users, where it was read. */
  peak_host_pss_bytes?: number;
  /** Highest resident memory of the process tree; shared pages count once for each process. */
  peak_host_rss_bytes?: number;
  /** Most that frameworks held on devices, added up in the same way. */
  peak_reserved_bytes?: number;
  /**
   * By how many findings and lines it can be searched for; absent: it was recorded before they were
   * kept, or no report was made at its end.
   */
  places?: number;
  /** How many were seen. */
  processes: number;
  /** Number of the signal that ended the main process. */
  signal?: number;
  /** On disk, everything in its folder. */
  size_bytes: number;
  /** Of allocators, that were recorded whole. */
  snapshots?: number;
  /** When it began, in ns since 1970. */
  start_wall_ns: number;
  /** cut off: its engine went away before the end. */
  state: "running" | "finished" | "cut off";
  /** Optimizer steps that were taken. */
  steps: number;
  /** It ended as it was asked to, such as by --duration. */
  stopped?: boolean;
  /** Its tags, by name. */
  tags?: Record<string, string>;
  /** The command that made it: run, attach, imagine, fit, monitor, bench. */
  verb?: string;
}

export interface RunInfo {
  /** The command's arguments, with secrets masked. */
  command: string[];
  /** The folder in which it was started. */
  cwd?: string;
  /** Some variables of its environment, with secrets masked. */
  env?: Record<string, string>;
  /** The commit of the program's folder; absent: none is known. */
  git?: Git;
  /** The machine. */
  host: Host;
  /** The id of the run. */
  id: string;
  /** Where its figures come from. */
  label: Label;
  /** The name that it was given. */
  name?: string;
  /** The settings of the recording, by name. */
  options?: Record<string, string>;
  /** When it began, in ns on the machine's monotonic clock: the same instant as start_wall_ns. */
  start_mono_ns: number;
  /** When it began, in ns since 1970. */
  start_wall_ns: number;
  /** Its tags, by name. */
  tags?: Record<string, string>;
  /** How it was recorded: run, imagine, attach or replay. */
  verb: string;
  /** The version of hightide that recorded it. */
  version: string;
}

export interface RunList {
  /** There may be more: ask again with before=next. */
  next?: string;
  /**
   * Where finding or line is asked for: runs of which nothing is known that these could ask for, as
   * they have no report yet or were recorded before findings were kept. At most 1,000 are counted.
   */
  not_searched?: number;
  /** The runs, the newest first. */
  runs: Run[];
}

/** Options of the kind search: try many allocator settings on a snapshot's trace. */
export interface SearchOptions {
  /** number of the device; -1: the one with the highest peak */
  device?: number;
  /** name of another GPU, as hightide gpus lists them */
  gpu?: string;
  /** another size of its memory, as 24GiB */
  memory?: string;
  /** id of the snapshot */
  snapshot?: string;
}

export interface Searched {
  /**
   * What the allocator can have, in bytes, as asked for or as the trace says; absent: neither does.
   */
  capacity_bytes?: number;
  /** How long that took, in ns. */
  duration_ns: number;
  /** How many settings were tried. */
  settings: number;
}

export interface SegmentMap {
  /** Bytes of it that are in use or wait for another stream. */
  active_bytes: number;
  /** Where it begins, as a number. */
  address: number;
  /** Its blocks by address, without gaps. */
  blocks: [number, number, number, number][];
  /** Whether it is an expandable segment. */
  expandable?: boolean;
  /** Whether it serves large requests. */
  large: boolean;
  /** The private pool that it is of; absent: none. */
  pool?: string;
  /** Its size in bytes. */
  size_bytes: number;
  /** The stream that it belongs to. */
  stream: number;
}

export interface SentFile {
  /** The size of the whole file, in bytes. */
  bytes: number;
  /** Its first bytes, to the end of its header. */
  head: string;
  /** As model.safetensors. */
  name: string;
}

export interface SentModel {
  /** A config.json of Hugging Face, as it is. */
  config?: unknown;
  /** Files of safetensors or GGUF: their headers alone. */
  files?: SentFile[];
  /** How to call the model that is sent. */
  name?: string;
}

export interface Series {
  /** As the driver or the framework calls it: nvidia:0, cuda:0. */
  device?: string;
  /** Which of the devices of the snapshot. */
  device_number?: number;
  /** How far y may be off, to either side, where that is known. */
  error?: number;
  /** Of a snapshot. */
  file?: string;
  /** Whose allocator it is. */
  framework?: string;
  /** Where the figures come from: measured, sampled, imagined, replayed, estimated. */
  label: Label;
  /** The quantity, as host.rss. */
  name: string;
  /** All that in words. */
  of?: string;
  /** Id in the run; absent: those of the whole run, or of the machine. */
  process?: number;
  /** The quantity in words. */
  title: string;
  /** Of y: bytes, ns, count, ppm and so on. */
  unit: Unit;
  /** Rising. */
  x: number[];
  /** Of x: ns since the run began, or event of a trace. */
  x_unit: Unit;
  /** One for each x. */
  y: number[];
}

export interface Server {
  /** The engine. */
  engine: string;
  /** Its version. */
  engine_version?: string;
  /** All starts, the cheapest first. */
  points: ServerPoint[];
  /** The one that is recommended, started whole with its flags; absent: none reaches the goal. */
  recommended?: ServerPoint;
  /** The command with these flags. */
  recommended_command?: string[];
  /** How long each is. */
  tokens?: number;
  /** How many sequences it is to run at once; absent: that was not asked for. */
  users?: number;
}

export interface ServerPoint {
  /** What it costs, in words; how long an answer takes is not known. */
  costs: string;
  /** What latency depends on: whether CUDA graphs are captured. */
  cuda_graphs: boolean;
  /** What latency depends on: how many GPUs share each layer. */
  gpus: number;
  /**
   * What latency and numbers depend on: the type of keys and values, as the engine calls it; auto:
   * that of the model.
   */
  kv_dtype?: string;
  /** The greatest length of a sequence, in tokens. */
  max_model_len?: number;
  /** What latency depends on: tokens of the largest batch, by which prompts are read. */
  max_num_batched_tokens?: number;
  /** What latency depends on: how many sequences run at once at most. */
  max_num_seqs?: number;
  /** No other start that ran holds as many tokens at no more cost. */
  on_frontier: boolean;
  /** Whether it serves what was asked for, with room to spare. */
  reaches_goal: boolean;
  /** It is the one that is recommended. */
  recommended: boolean;
  /** How many sequences of the length asked, else of the greatest length, it runs at once. */
  sequences?: number;
  /** What differs from the command; empty: nothing. */
  settings: Setting[];
  /** The share of the GPU's memory that the engine may use. */
  utilization?: number;
  /** What came of the imagined start; kv_tokens has the tokens of its KV cache. */
  verdict: GPUVerdict;
  /** The same as flags. */
  what: string;
}

export interface Serving {
  /** Beside the weights, what the engine's profiling pass took at its peak, in bytes. */
  activation_bytes?: number;
  /** Whether it was seen to take requests: its HTTP port was open, or a call for texts returned. */
  answers: boolean;
  /** How many sequences of the length asked it holds, as the engine says it. */
  asked_concurrency?: number;
  /** Tokens of a block. */
  block_size?: number;
  /** That share in bytes. */
  budget_bytes?: number;
  /** Whether the engine is set to capture CUDA graphs. */
  cuda_graphs?: boolean;
  /** The engine. */
  engine: string;
  /** What was free when the engine started, in bytes. */
  free_bytes?: number;
  /** What capturing CUDA graphs took of the device, in bytes, as the engine measured it. */
  graph_bytes?: number;
  /**
   * What graph_bytes may be, from the lowest to the highest, in bytes: what a driver keeps for the
   * nodes of graphs is estimated.
   */
  graph_range_bytes?: Range;
  /**
   * What the engine took out of the KV cache for CUDA graphs before it captured them, in bytes, by
   * its own estimate.
   */
  graph_reserved_bytes?: number;
  /** What is left of the share for the KV cache, in bytes. */
  kv_available_bytes?: number;
  /** The blocks of the KV cache. */
  kv_blocks?: number;
  /** The KV cache in bytes, of one GPU. */
  kv_bytes?: number;
  /** The type of keys and values, as the engine calls it; auto: that of the model. */
  kv_dtype?: string;
  /** Where a part of the KV cache is kept on the host: its bytes there, for one GPU. */
  kv_host_bytes?: number;
  /** The KV cache of one sequence of the greatest length, in bytes of one GPU. */
  kv_needed_bytes?: number;
  /** How many tokens the KV cache holds. */
  kv_tokens?: number;
  /** Where requests were played: how many were answered. */
  load_answered?: number;
  /** The blocks of the KV cache that they had at most. */
  load_blocks?: number;
  /** How often one lost its blocks to another, and was computed anew. */
  load_preemptions?: number;
  /** Why one of them was not. */
  load_refused?: string;
  /** How many of them ran at once at most. */
  load_running?: number;
  /**
   * Where that is more than there is: the longest sequence that there is room for, in tokens, as
   * the engine says it.
   */
  longest_model_len?: number;
  /** The longest sequence that the model is made for, in tokens. */
  longest_of_model?: number;
  /** The largest batch of which a CUDA graph is captured, in tokens. */
  max_captured?: number;
  /** How many sequences of the greatest length the KV cache holds, as the engine says it. */
  max_concurrency?: number;
  /** The greatest length of a sequence, in tokens. */
  max_model_len?: number;
  /** Tokens of the largest batch. */
  max_num_batched_tokens?: number;
  /** How many sequences the engine runs at once. */
  max_num_seqs?: number;
  /** What the engine found in use beside PyTorch's allocator, in bytes. */
  non_torch_bytes?: number;
  /** Whether it has all its memory and takes requests. */
  ready: boolean;
  /** What its start was at last: device, weights, profiling, kv_cache, warm-up, graphs or ready. */
  step?: string;
  /** The KV cache with which the engine's log promises to use all of the GPU, in bytes. */
  suggested_kv_bytes?: number;
  /** How many GPUs share each layer. */
  tensor_parallel_size?: number;
  /** The tokens of each of their sequences. */
  tokens?: number;
  /** How many users were asked for: sequences at once. */
  users?: number;
  /** The share of the GPU's memory that the engine may use. */
  utilization?: number;
  /** Its version. */
  version?: string;
  /** The weights in bytes, as the engine measured them on one GPU. */
  weights_bytes?: number;
  /**
   * Where there was no memory to load them all: what the weights take on one GPU, in bytes, by the
   * model as the engine builds it.
   */
  weights_needed_bytes?: number;
}

export interface Setting {
  /** The engine's argument, by vLLM's name. */
  argument: string;
  /** The same as the server's command says it. */
  flag: string;
  /** How many GPUs that takes; absent: as many as without it. */
  gpus?: number;
  /** Its value. */
  value: string;
}

export interface Settings {
  /** Of donate: as step(params, state) at train.py:18. */
  arguments?: string[];
  /** Of checkpoint: the names of the blocks. */
  blocks?: string[];
  /** Of compile_budget: the share of the activations that compiled graphs may keep. */
  budget?: number;
  /** Of accumulation: the command as it is changed. */
  command?: string;
  /** Of micro_batch and accumulation: into how many parts a batch is cut. */
  parts?: number;
  /** Of fsdp: how many processes the training is, each with a GPU. */
  ranks?: number;
  /** Of allocator: as in PYTORCH_CUDA_ALLOC_CONF. */
  settings?: string;
  /** Of loader_workers: how many workers a loader has at most. */
  workers?: number;
}

export interface Share {
  /** The account that made it. */
  by: string;
  /** From when on it opens nothing. */
  expires: string;
  /** Its number, by which it is revoked. */
  id: number;
  /** When it was made. */
  made: string;
  /** When it was revoked; absent: it was not. */
  revoked?: string;
  /** The id of the run that it shows. */
  run: string;
}

export interface ShareInputBody {
  /** How long it lasts, in seconds; absent: seven days. */
  lasts_s?: number;
}

export interface ShareList {
  /** The newest first, also those that have ended. */
  shares: Share[];
}

export interface ShortCall {
  /** What of them lies in donated arguments, in bytes. */
  alias_bytes: number;
  /** What its arguments take, in bytes. */
  argument_bytes: number;
  /** The file of the line that called it. */
  called_file?: string;
  /** That line, from 1. */
  called_line?: number;
  /** Its file. */
  file: string;
  /** The function. */
  function: string;
  /** Its line, from 1. */
  line: number;
  /** What its outputs take, in bytes, those that lie in donated arguments too. */
  output_bytes: number;
  /** What its temporaries take, in bytes. */
  temp_bytes: number;
  /** What was in use on the device when it failed, in bytes. */
  used_bytes?: number;
}

export interface SiblingsOfBlock {
  /** How many blocks of the whole trace have the same stack. */
  blocks: number;
  /** The sum of their sizes in bytes. */
  bytes: number;
  /** How many of them outlive the trace. */
  lasting: number;
  /** The bytes of those that lived at the point asked about. */
  together: number;
}

export interface Side {
  /** The allocator's settings, as PYTORCH_ALLOC_CONF has them. */
  alloc_conf: string;
  /** How often it emptied its cache because the device had no more. */
  alloc_retries: number;
  /** What it held over the trace. */
  curve: TrialCurve;
  /** What it held at the moment asked for. */
  moment: Moment;
  /** The number of the event that found no memory; null: none. */
  oom: number | null;
  /** What that asked for, in bytes. */
  oom_bytes?: number;
  /** Whether the memory would have been enough in one piece. */
  oom_fragmented?: boolean;
  /** The highest of what it gave, in bytes. */
  peak_allocated_bytes: number;
  /** The highest of what the allocator took from the device, in bytes. */
  peak_reserved_bytes: number;
  /** The model of the allocator, where it is not PyTorch's native one. */
  policy_name?: string;
  /** How many requests found no memory, as in the record. */
  refused?: number;
  /** How often it asked the device for memory or gave some back. */
  segment_calls: number;
}

export interface SiteLabel {
  /** The file; absent: not recorded. */
  file?: string;
  /** The line, from 1. */
  line?: number;
  /** The line and its function, as reports show it. */
  name: string;
  /** Whether it is the program's own, not an installed package's. */
  user?: boolean;
}

export interface SizeClass {
  /** The sum of its pieces in bytes. */
  bytes: number;
  /** The least size of a piece of this class, in bytes. */
  from_bytes: number;
  /** How many pieces there are. */
  pieces: number;
}

export interface SnapshotList {
  /** The snapshots that are open. */
  snapshots: OpenedSnapshot[];
}

export interface Spans {
  /** There are others in this stretch of time. */
  more?: boolean;
  /** The stays in phases and modules. */
  spans: PhaseBar[];
}

export interface Spark {
  /** As the driver or the framework calls it: nvidia:0, cuda:0. */
  device?: string;
  /** Which of the devices of the snapshot. */
  device_number?: number;
  /** How far y may be off, to either side, where that is known. */
  error?: number;
  /** Of a snapshot. */
  file?: string;
  /** Whose allocator it is. */
  framework?: string;
  /** The run. */
  id: string;
  /** Where the figures come from: measured, sampled, imagined, replayed, estimated. */
  label: Label;
  /** The quantity, as host.rss. */
  name: string;
  /** All that in words. */
  of?: string;
  /** Id in the run; absent: those of the whole run, or of the machine. */
  process?: number;
  /** The quantity in words. */
  title: string;
  /** Of y: bytes, ns, count, ppm and so on. */
  unit: Unit;
  /** Rising. */
  x: number[];
  /** Of x: ns since the run began, or event of a trace. */
  x_unit: Unit;
  /** One for each x. */
  y: number[];
}

export interface SparkList {
  /** Those that are read; ask again for others. */
  sparks: Spark[];
}

export interface StackSet {
  /** As the driver or the framework calls it: nvidia:0, cuda:0. */
  device?: string;
  /** Which of the devices of the snapshot. */
  device_number?: number;
  /** Half the 95 % interval of the total, in bytes. */
  error_bytes?: number;
  /** Of a trace: the number of the last event before. */
  event?: number;
  /** Of a snapshot. */
  file?: string;
  /** Places in code, each once. */
  frames: FramePlace[];
  /** Whose allocator it is. */
  framework?: string;
  /** Where the figures come from. */
  label: Label;
  /** What the flame graph can show. */
  measures?: FlameMeasure[];
  /** heap of a process, or device of a snapshot. */
  name: string;
  /** All that in words. */
  of?: string;
  /**
   * The stacks as a tree: by node, the node that called it, which comes before it; -1: it is an
   * outermost one.
   */
  parents: number[];
  /** By node: the number of its place among the frames. */
  places: number[];
  /** Id in the run; absent: those of the whole run, or of the machine. */
  process?: number;
  /** Bytes of stacks that are too thin to list. */
  rest_bytes?: number;
  /** The stacks, most bytes first. */
  stacks: StackUse[];
  /** How many steps were completed before. */
  step?: number;
  /** The moment, in ns since the run began. */
  time_ns?: number;
  /** The same for people. */
  title: string;
  /** The sum over all stacks in bytes. */
  total_bytes: number;
}

export interface StackUse {
  /** How often it allocated. */
  allocations?: number;
  /** Of devices: what it held on average over time, in bytes. */
  average_bytes?: number;
  /** What it holds at the moment, in bytes. */
  bytes: number;
  /** Of a device: the bytes by what the blocks are for. */
  categories?: Record<string, number>;
  /** What it allocated and freed again, in bytes. */
  churn_bytes?: number;
  /** How many blocks, or of a heap samples, that is. */
  count: number;
  /** Of heaps: what it held when the program ended, or at the last reading, in bytes. */
  end_bytes?: number;
  /** Half the 95 % interval of that, in bytes. */
  error_bytes?: number;
  /** Of a trace that is explored: how many events were before its first block. */
  first?: number;
  /** Its innermost frame in the tree; -1: no frame is known. */
  node: number;
  /** The phase in which most of it was allocated. */
  phase?: string;
}

export interface Stat {
  /**
   * What that rests on: own repeats of the cell, pooled ones of cells that are alike, identical
   * repeats, or one run, which gives none.
   */
  basis: string;
  /** How many repeats have the figure. */
  count: number;
  /** How far each value may be off, where it is estimated; the interval includes it. */
  error?: number;
  /** The 95 % interval of the mean; absent: not known. */
  interval?: Interval;
  /** The largest. */
  max: number;
  /** The mean over repeats. */
  mean: number;
  /** The median. */
  median: number;
  /** The smallest. */
  min: number;
  /** The standard deviation. */
  std_dev: number;
}

export interface Status {
  /** The account of who asks, of which the server tells what it keeps; absent: it does not. */
  account?: string;
  /** Whether jobs may start programs (hightide ui --allow-exec). */
  allow_exec: boolean;
  /** Whether who asks may write comments on runs, at least of some project. */
  comments?: boolean;
  /** Whether who asks may see what machines hold. */
  fleet?: boolean;
  /** Where jobs start programs; absent: they start none. */
  folder?: string;
  /** The most that a file which is sent may have; absent: the server takes none. */
  max_upload_bytes?: number;
  /** The run that a link shows to who asks, and nothing else; absent: who asks is of the team. */
  outside?: string;
  /** Whether who asks may see what is kept of anybody. */
  people?: boolean;
  /** Why the data directory cannot be read now; absent: it can. */
  problem?: string;
  /** Whether who asks may make links by which people outside see a run. */
  shares?: boolean;
  /** How long the server has run, in ns. */
  uptime_ns: number;
  /** The version of hightide. */
  version: string;
}

export interface StatusInputBody {
  /** What was checked; absent: hightide. */
  context?: string;
  /** Why, in one line; absent: not said. */
  description?: string;
  /** How it ended. */
  state: "success" | "failure" | "error" | "pending";
  /** Where more is told, as https://…; absent: nowhere. */
  target_url?: string;
}

export interface StepCurve {
  /** How many allocations and frees the step has. */
  events: number;
  /** Its phases, told from the stacks that allocate. */
  phases: StepPhase[];
  /** The highest of each of up to 160 even parts of the step, in order. */
  points: TuneStepPoint[];
  /** The number of the step, from 1. */
  step: number;
}

export interface StepPhase {
  /** The number of its first event in the step. */
  from_event: number;
  /** forward, backward or optimizer. */
  phase: string;
  /** The number of its last event in the step. */
  to_event: number;
}

export interface StepPoint {
  /** Use of the device then, in bytes. */
  device_bytes?: number;
  /** Live heap then, sampled, in bytes. */
  heap_bytes?: number;
  /**
   * Resident and swapped memory without what of mapped files the kernel can take back, in bytes;
   * absent where that tells no more.
   */
  kept_bytes?: number;
  /** The process, by its id in the run. */
  process: number;
  /** Resident memory then, in bytes. */
  rss_bytes?: number;
  /** The number of the step. */
  step: number;
  /** When it ended, in ns since the run began. */
  time_ns: number;
}

export interface Steps {
  /** The phases, always inferred from the stacks that allocate. */
  phases: UsagePhase[];
  /** What they were told from: recorded, annotations, or inferred from what repeats. */
  source: string;
  /** The steps, in their order. */
  steps: Stretch[];
}

export interface Streamed {
  /** So many bytes of the stream are there: the next piece begins here. */
  at_bytes: number;
  /** What the server calls the run. */
  run: string;
  /** The project has the whole run: nothing need be sent. */
  there_already?: boolean;
  /** Somebody looks at the run now: send as soon as there is something, else every two seconds. */
  watched: boolean;
}

export interface Stretch {
  /** The number of its first event. */
  from_event: number;
  /** The number of its last event. */
  to_event: number;
}

export interface Summary {
  /** Whether the recording has its end. */
  complete: boolean;
  /** Records that were lost on the way. */
  dropped: number;
  /** From the start to the end of the command, in ns. */
  duration_ns: number;
  /**
   * Of a program that failed: the Python exception that nobody caught, of the main process, else of
   * a child.
   */
  exception?: Exception;
  /** The command's exit code; null where a signal ended it. */
  exit_code: number | null;
  /** What was found, worst first. */
  findings: Finding[];
  /**
   * Steady growth after the warm-up, in bytes a step; 0: looked for and not seen; absent: too few
   * steps to tell.
   */
  growth_bytes_per_step?: number;
  /** Where growth is 0: the least over the run, of a process, that is told, in bytes. */
  growth_least_bytes?: number;
  /** The path of the HTML report. */
  html?: string;
  /** Where the peak comes from. */
  label: Label;
  /** From how much on growth would have been told, where none was. */
  looked_for?: string;
  /** Of a program that was allowed so much host memory: whether it ran in that. */
  memory_limit?: MemoryLimit;
  /** The name that it was given. */
  name?: string;
  /** What was not looked for, and why: then an empty list of findings says nothing of it. */
  not_looked_for?: string;
  /** What was not observed and why, for people. */
  notes?: string[];
  /** The highest of each figure. */
  peak: Peak;
  /** The path of the recording. */
  recording?: string;
  /** The id of the run, for later commands. */
  run_id: string;
  /** The signal that ended it. */
  signal?: number;
  /**
   * The median of a step's time in ns; absent without steps, and on imaginary GPUs, where no kernel
   * runs.
   */
  step_time_ns?: number;
  /** How many optimizer steps were completed; 0: there was no training. */
  steps: number;
  /**
   * Whether --steps or --duration ended it, in good order or by the signal that followed. Of
   * attach: the recording ended so, and the process went on.
   */
  stopped_as_asked?: boolean;
  /** The version of this form. */
  version: number;
}

export interface Suspect {
  /** In what it differs, for programs. */
  aspect: "failed" | "work" | "device" | "host";
  /** The process, by its id in the run. */
  process: number;
  /** Its rank. */
  rank: number;
  /** How, with its figures. */
  text: string;
  /** In what it differs, for people. */
  title: string;
}

export interface Table {
  /** Its columns; one in which nothing was observed is left out. */
  columns: Column[];
  /** As the driver or the framework calls it: nvidia:0, cuda:0. */
  device?: string;
  /** Which of the devices of the snapshot. */
  device_number?: number;
  /** Of a snapshot. */
  file?: string;
  /** Whose allocator it is. */
  framework?: string;
  /** What it tells: phases, modules, sites, blame and others. */
  name: string;
  /** What is to be known of it. */
  note?: string;
  /** All that in words. */
  of?: string;
  /** Id in the run; absent: those of the whole run, or of the machine. */
  process?: number;
  /** A cell is a text, an integer in its column's unit, or null. */
  rows: Cell[][];
  /** Its title for people. */
  title: string;
  /** What the shares in it are of, in bytes, where rows are missing. */
  total_bytes?: number;
}

export interface Taken {
  /** Its size in bytes. */
  size_bytes: number;
}

export interface Term {
  /** Its 95 % interval; absent: not known. */
  interval?: Interval;
  /** What it is of: fixed, batch, batch × seq². */
  name: string;
  /** Its value. */
  value: number;
}

export interface Throughput {
  /** The batch. */
  batch: number;
  /** Samples a second. */
  samples_per_s: number;
}

export interface Told {
  /** What it tells; docs/formats/api.md has its form by name. */
  data: unknown;
  /** As the event is called: ready, trying, trial, point, progress, matrix, status, alert. */
  name: string;
}

export interface TraceGrowth {
  /** Its growth over the steps looked at, in bytes. */
  bytes: number;
  /** The median of its growth in bytes a step. */
  bytes_per_step: number;
  /** How sure that is, from 0 to 1. */
  confidence: number;
  /** Its stack, innermost first; null: not recorded. */
  frames: Location[] | null;
  /** The site. */
  name: string;
  /** The step, from 1, at which it began, where it did not grow before. */
  since_step?: number;
  /** What steps were told from: annotations or inferred; stretches: no steps are known. */
  source: string;
  /** How many steps were looked at. */
  steps: number;
}

export interface TraceOOM {
  /** Settings that avoid it, verified by replay. */
  advice?: string;
  /** Bytes allocated then. */
  allocated_bytes: number;
  /** What the request asked for, in bytes. */
  asked_bytes: number;
  /** The largest groups that were alive then. */
  blame: Blame[];
  /** Bytes cached then. */
  cached_bytes?: number;
  /** In how many pieces those are; absent where the file knows blocks alone. */
  cached_pieces?: number;
  /** Whether one piece alone was large enough. */
  contiguous?: boolean;
  /** What the device had free, as it said, in bytes. */
  device_free_bytes?: number;
  /** All that the device has, in bytes, where the file says it. */
  device_total_bytes?: number;
  /** The number of the event. */
  event: number;
  /** How many requests failed, of which this is the last. */
  failures: number;
  /** Whether what is free and cached would have been enough in one piece. */
  fits_without_fragmentation?: boolean;
  /** The stack of the request, innermost first; null: not recorded. */
  frames: Location[] | null;
  /** The largest of these pieces in bytes; absent where the file knows blocks alone. */
  largest_cached_bytes?: number;
  /** Whether the file's settings limit the process to a part of the device. */
  limited?: boolean;
  /** The part of the device to which the program limits itself, in bytes, where it was seen to. */
  own_limit_bytes?: number;
  /** The settings that were tried, and what became of them. */
  replayed?: Advice;
  /** Bytes reserved then. */
  reserved_bytes?: number;
  /**
   * What the allocator asks the device for to serve it, in bytes; where that is not known, what was
   * asked for.
   */
  segment_bytes: number;
}

export interface TracePeak {
  /** The same with blocks that wait for another stream, in bytes. */
  active_bytes: number;
  /** Bytes allocated. */
  allocated_bytes: number;
  /** The number of the event after which it is; -1: before the first. */
  event: number;
  /** Bytes that the program asked for; absent where the file knows blocks alone. */
  requested_bytes?: number;
  /** Bytes reserved; absent where a profiler did not note it. */
  reserved_bytes?: number;
  /** When, in ns since 1970; absent where the file has no times. */
  time_ns?: number;
}

export interface TraceTimeline {
  /** By column: what was allocated, by what it is for. */
  by_category: Band[];
  /** By column: what was allocated, by the largest sites and the rest. */
  by_site: Band[];
  /** By column: the number of the event, the highest moment of its stretch. */
  events: number[];
  /**
   * By column: the most that empty_cache would have given back in the stretch, in bytes; absent
   * where the file does not tell.
   */
  releasable_bytes?: number[];
  /** By column: bytes reserved; absent where the file does not tell. */
  reserved_bytes?: (number | null)[];
  /** By column: when, in ns since the first event. */
  time_ns?: number[];
}

export interface Trend {
  /** In the order of their first runs. */
  commits: Commit[];
  /** Where it comes from: measured or imagined; empty: no run can be compared. */
  label: string;
  /** Which runs say nothing here, and why. */
  left_out: string[];
  /** Why the noise of no change is known; absent: it is of one, or there is no change. */
  noise_unknown?: string;
  /** What else there is to say of it. */
  note?: string;
  /**
   * What it is of: peak, the figure by which runs are known; allocated; reserved; growth;
   * fragmentation; or FILE:LINE or FILE:FUNCTION, for what lines there held at the peak.
   */
  of: string;
  /** Of this form: 1. */
  version: number;
  /** The figure, as PSS; empty: no run can be compared. */
  what: string;
}

export interface Trial {
  /** The batch. */
  batch: number;
  /** What the allocator could have had, in bytes. */
  capacity_bytes?: number;
  /**
   * Memory in use on the device then, with context and libraries, in bytes; where the framework
   * takes memory ahead of need, as JAX does, what of it is needed.
   */
  device_used_bytes?: number;
  /** Where the figures come from. */
  label: Label;
  /** Whether it fits. */
  ok: boolean;
  /** The highest of what the framework's allocator gave, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest of what it took from the device, in bytes. */
  peak_reserved_bytes?: number;
  /**
   * Why it did not fit, in the framework's words: at most 1,000 characters, then how many more
   * there were.
   */
  problem?: string;
  /**
   * What the answer rests on, for people: numbers that decide and that no kernel computed, memory
   * that still rose.
   */
  rests_on?: string[];
  /** The median of a step's time in ns, where time was measured. */
  step_time_ns?: number;
  /** The memory of the device in bytes. */
  total_bytes?: number;
}

export interface TrialCurve {
  /** By part: the highest of what was in use or waited for another stream, in bytes. */
  active_bytes: number[];
  /** By part: the event of the record with which it begins. */
  event: number[];
  /** By part: the highest of what was reserved, in bytes. */
  reserved_bytes: number[];
}

export interface Try {
  /** The command that runs it so. */
  command?: string;
  /** The compute capability, as 8.6. */
  compute_capability?: string;
  /** What a process takes beside the framework's allocator, in bytes. */
  context_overhead_bytes: number;
  /** The GPU's short name in the catalogue. */
  gpu: string;
  /** Its full name. */
  gpu_name: string;
  /** The memory less its highest use, in bytes; negative: what is missing, where that is known. */
  headroom_bytes?: number;
  /** What was changed: allocator, gpu, batch, bf16, checkpointing, memory and others. */
  kind: string;
  /** Of an LLM server that is ready: how many tokens its KV cache holds. */
  kv_tokens?: number;
  /** Where the figures come from: imagined or estimated. */
  label: Label;
  /** How many multiprocessors it has. */
  multiprocessors?: number;
  /** What limits the verdict. */
  note?: string;
  /** The highest of what the allocator gave, of the fullest process, in bytes. */
  peak_allocated_bytes?: number;
  /** The highest use of the fullest GPU, everything in it, in bytes. */
  peak_device_used_bytes?: number;
  /**
   * What the program needs of the fullest GPU, in bytes, where its framework takes memory ahead of
   * need.
   */
  peak_needed_bytes?: number;
  /** The highest of what the allocator took from the device, of the fullest process, in bytes. */
  peak_reserved_bytes?: number;
  /** A price in USD an hour; absent: none is known. */
  price_usd_per_hour?: number;
  /** The GPU's memory as a framework sees it, in bytes. */
  total_bytes: number;
  /**
   * Of an LLM server, where a number of users was asked for: how many sequences of the length asked
   * it runs at once.
   */
  users?: number;
  /** fits, tight, conditional, few, oom, failed, unused, or none: no verdict. */
  verdict: string;
  /** The same in words. */
  what: string;
}

/** Options of the kind tune: find the cheapest changes by which a training fits. */
export interface TuneOptions {
  /**
   * lever of PyTorch that changes numbers and may be used all the same: micro_batch, accumulation,
   * fsdp, chunked_loss, bf16, states_8bit, lora, and of an LLM server kv_fp8; several with commas
   */
  allow?: (
    | "micro_batch"
    | "accumulation"
    | "fsdp"
    | "chunked_loss"
    | "bf16"
    | "states_8bit"
    | "lora"
    | "kv_fp8"
  )[];
  /**
   * the training and its arguments; it runs here, unmodified, and no kernel does; a list, a word
   * each
   */
  command?: string[];
  /**
   * what is to be reached: fit, with the room that a verdict needs not to be tight; or
   * headroom=10%, a share of the memory that the training can do without; or batch, the largest
   * that fits; or cost, the cheapest of the GPUs on which a plan fits (default fit)
   */
  goal?: string;
  /** name of the GPU as in hightide gpus; with goal cost several with commas, or all */
  gpu?: string;
  /** number of these GPUs in the machine (default 1) */
  gpus?: number;
  /**
   * size of the host's memory that all processes of the program may take together, as 16GiB:
   * changes of its loaders and of malloc are tried too
   */
  host_memory?: string;
  /** with goal cost: the cheapest machine that a cloud rents, in place of GPUs */
  instances?: boolean;
  /** size of the GPU's memory in place of the catalogue's, as 24GiB */
  memory?: string;
  /**
   * write the plan as a change of the program's own files too, applied to a copy and imagined: a
   * unified diff beside the plan
   */
  patch?: boolean;
  /** with users: number of tokens of each sequence, prompt and answer together */
  tokens?: number;
  /** of an LLM server: number of sequences that it is to run at once */
  users?: number;
}

export interface TuneOutcome {
  /** The recommendation in a sentence; absent: the search was ended before. */
  answer?: string;
  /** With the goal batch: how many samples the largest batch has that fits with the plan. */
  batch?: number;
  /**
   * With the goal batch, where the command does not say it: the setting of a known trainer that
   * does.
   */
  batch_owner?: string;
  /** How many repeated blocks it has. */
  blocks: number;
  /** The program. */
  command: string[];
  /** How long it took, in ns. */
  duration_ns: number;
  /** Where it was written. */
  file?: string;
  /** What was to be reached. */
  goal: string;
  /** The GPU's short name. */
  gpu: string;
  /** Its full name. */
  gpu_name: string;
  /** With --host-memory: what the processes may take of the host, in bytes. */
  host_memory_bytes?: number;
  /** How many imagined runs it took. */
  imagined_runs: number;
  /** Where the figures come from: imagined. */
  label: Label;
  /** With --instances: the machine to rent. */
  machine?: string;
  /** The class of the model. */
  model?: string;
  /** What the unchanged program takes of a GPU that has plenty, in bytes. */
  need_bytes?: number;
  /**
   * Memory over the step in which that run was fullest; absent: the program is several processes.
   */
  need_curve?: StepCurve;
  /** What else is to be known, for people. */
  notes: string[];
  /** A plan as a change of the program's own files, where it was asked for. */
  patch?: Patch;
  /** All plans that were run, the cheapest first. */
  points: Point[];
  /** With the goal cost: what the cheapest place costs, in USD an hour. */
  price_usd_per_hour?: number;
  /** The cheapest plan that reaches the goal; absent: none does. */
  recommended?: Plan;
  /** Levers that cannot be used in this program, and why. */
  refused?: Record<string, string>;
  /** What the goal wants to stay free, in bytes. */
  room_bytes: number;
  /** Of an LLM server: what was found of its settings; there are then no plans. */
  server?: Server;
  /**
   * Where no plan fits: the one that takes least of those that save most, run where there is plenty
   * of memory.
   */
  smallest?: Point;
  /** Its memory in bytes. */
  total_bytes: number;
  /** With the goal batch: the sizes that were tried, in that order. */
  tried_batches?: Probe[];
  /** That of its run. */
  verdict?: string;
  /** The version of this form. */
  version: number;
}

export interface TuneStepPoint {
  /** Bytes allocated. */
  allocated_bytes: number;
  /** The number of the allocation or free after which it is, from 0 in the step. */
  event: number;
}

export interface Turnover {
  /** How often it allocated. */
  allocations: number;
  /** What it held on average over time, in bytes. */
  average_bytes: number;
  /** What it allocated and freed again, in bytes. */
  churn_bytes: number;
  /** The stack that freed most again, innermost first; null: not recorded. */
  frames: Location[] | null;
  /** The site. */
  name: string;
  /** How many blocks that is. */
  since_start_blocks: number;
  /** What is alive from before the trace to its end, in bytes. */
  since_start_bytes: number;
}

export interface TypeInfo {
  /** In bytes. */
  bytes: number;
  /** Numbers as stored. */
  elements: number;
  /** As BF16 or Q4_K. */
  type: string;
}

export interface Undecided {
  /** How often it was read. */
  count: number;
  /** The file. */
  file: string;
  /** Its function. */
  function?: string;
  /** The line that reads the number, from 1. */
  line: number;
  /**
   * What it is: bool, int, float; spread: counts of a routing; share: of a mask; size: of what an
   * operation gave.
   */
  number: string;
  /** The operation that gave it. */
  op?: string;
  /** What the second run takes, as JSON, where that is not the other end. */
  other?: string;
  /** Whether a second run does not show what the number can do. */
  unsure?: boolean;
  /** The largest that it can be. */
  upper?: number;
  /** What it decides: branch, loop, size, range, slice, passed on, kept or caught. */
  use: string;
  /** The line at which it decides that, from 1. */
  use_line?: number;
  /** What the program was given, as JSON. */
  value: string;
}

/** What a number counts; milli is thousandths of one whole; empty: it is a text. */
export type Unit = "bytes" | "ns" | "count" | "milli" | "celsius" | "mW" | "event" | "";

export interface Unreached {
  /** The file of it. */
  file?: string;
  /** The line, from 1. */
  line?: number;
  /** Whether it was reached is not known. */
  perhaps?: boolean;
  /** Why that matters. */
  text?: string;
  /** What was not reached: evaluation, checkpoint, longest batch, steady peak and others. */
  what: string;
}

export interface Uploaded {
  /** Blocks at the end. */
  blocks: number;
  /** How many devices it tells of. */
  devices: number;
  /** Events of allocators' histories; of a recording, those of its snapshots. */
  events: number;
  /** The format that it was read as, by its name in the list of formats. */
  format: string;
  /** Of GET /snapshots/{id}; absent where the file is a recording. */
  id?: string;
  /** The name of the file as it was given. */
  name: string;
  /** Of GET /runs/{id}: the file is a recording. */
  run?: string;
  /** Its size in bytes. */
  size_bytes: number;
}

export interface UsagePhase {
  /** The number of its first event. */
  from_event: number;
  /** forward, backward or optimizer. */
  phase: string;
  /** The number of its last event. */
  to_event: number;
}

export interface Use {
  /** Sequences in a batch on each GPU, otherwise. */
  batch?: number;
  /** Type of the weights: auto, bf16, fp16, fp32, fp8, int4. */
  dtype: string;
  /** serve, infer, full, lora, qlora, dpo or grpo. */
  for: string;
  /** GPUs together. */
  gpus: number;
  /** Type of the cache: auto, fp8. */
  kv_dtype: string;
  /** Rank of the adapters. */
  lora_rank?: number;
  /** Whether a training keeps all activations for the backward pass. */
  no_checkpointing?: boolean;
  /** Of a training: adamw, adamw-8bit or sgd. */
  optimizer?: string;
  /** Tokens of a sequence. */
  seq: number;
  /** Sequences that are held at once, when served. */
  users?: number;
  /** The part of a GPU's memory that the server takes. */
  utilization?: number;
}

export interface Used {
  /** The model of the GPU; empty: memory of hosts. */
  gpu: string;
  /** Time of GPUs on which memory was held; of a shared one the share by bytes. */
  held_ms: number;
  /** Of that, time in which the holder did nothing. */
  idle_ms: number;
  /** YYYY-MM, of UTC. */
  month: string;
  /** Whose processes they were. */
  person: string;
  /** Empty: not known. */
  project: string;
  /** Limits of control groups of jobs, times seconds. */
  reserved_mib_s: number;
  /** Of that, what they were not charged with at the time. */
  unused_mib_s: number;
}

export interface Waste {
  /** As configured; absent: none is. */
  currency?: string;
  /** The model; empty: memory of hosts. */
  gpu: string;
  /** Time of GPUs on which memory was held. */
  held_ms: number;
  /** Of that, time in which the holder did nothing. */
  idle_ms: number;
  /** YYYY-MM, of UTC. */
  month: string;
  /** Whose processes they were. */
  people: string[];
  /** Empty: not known. */
  project: string;
  /** Limits of jobs in MiB, times seconds. */
  reserved_mib_s: number;
  /** Of that, what they were not charged with at the time. */
  unused_mib_s: number;
  /**
   * What the unused part costs, in hundredths of the currency; absent: no price is configured for
   * it.
   */
  wasted_cents?: number;
}

export interface WhatIf {
  /** The most that the allocator could have, in bytes; absent: no limit. */
  capacity_bytes?: number;
  /** What the numbers of blocks' categories stand for. */
  categories: string[];
  /** The number of the device in the file. */
  device: number;
  /** How many events were replayed. */
  events: number;
  /** Whether every address of the record comes out of the model. */
  exact: boolean;
  /** replayed; estimated where the model is not exact to the address. */
  label: Label;
  /** What to put before the program's command; empty where nothing is changed. */
  line: string;
  /**
   * What the recorded settings come to from a fresh start, where that is another than the record.
   */
  note?: string;
  /**
   * The lowest and the highest peak of what is reserved, over what addresses may turn out to be, in
   * bytes.
   */
  peak_reserved_spread_bytes?: [number, number];
  /** What the settings of the record came to. */
  recorded: Side;
  /** What the settings asked for come to. */
  replayed: Side;
  /** What is different, in words. */
  sentence: string;
  /** The version of PyTorch whose rules apply. */
  torch: string;
  /** Whether memory runs out; absent: it is not short, and no limit was asked for. */
  verdict?: ReplayVerdict;
}

export interface WhatIfInputBody {
  /** Device of the snapshot; absent or -1: the one with the highest peak. */
  device?: number;
  /** After which event the segments are shown; absent: at the peak, or where memory runs out. */
  event?: number;
  /**
   * GPU of the catalogue whose memory, less a process's context, is the limit. Without it and
   * memory, what the allocator could have, as the trace says.
   */
  gpu?: string;
  /** The client has the recorded side of this event: its curve and segments are left out. */
  known?: boolean;
  /** Blocks of other sites are marked. */
  line?: string;
  /** That limit in place of a GPU's, as 24GiB. */
  memory?: string;
  /** Blocks of other modules are marked. */
  module?: string;
  /** A regular expression as for blocks: others are marked. */
  q?: string;
  /** Allocator settings as PYTORCH_ALLOC_CONF has them; absent: as recorded. */
  settings?: string;
  /** Also run every order of addresses; three times the work. */
  spread?: boolean;
}
