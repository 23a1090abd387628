// The report's JSON as internal/report/report.go writes it. Bytes and nanoseconds are integers; a
// key that is missing was not observed.

export type Unit = "bytes" | "ns" | "count" | "milli" | "celsius" | "mW" | "event" | "";
export type Label = "measured" | "sampled" | "imagined" | "replayed" | "estimated" | "";

export interface Location {
  file: string;
  line?: number;
  function?: string;
  native?: boolean;
}

export interface Peak {
  host_rss_bytes?: number;
  host_pss_bytes?: number;
  host_pss_error_bytes?: number;
  heap_bytes?: number;
  device_used_bytes?: number;
  allocated_bytes?: number;
  reserved_bytes?: number;
  time_ns?: number;
  phase?: string;
  step?: number;
  process?: number;
  label: Label;
}

export interface Exception {
  sentence?: string;
  class: string;
  text?: string;
  from?: string;
  time_ns: number;
  process: number;
  file?: string;
  line?: number;
  function?: string;
}

/** The one figure by which a run is known. */
export interface Figure {
  bytes: number;
  error_bytes?: number;
  what: string;
  source: string;
  label: Label;
  at_least?: boolean;
}

/** How a run ended; of one on imaginary GPUs the verdict. */
export interface Ending {
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
  text: string;
}

export interface Headline {
  figure?: Figure;
  ended?: Ending;
  verdict: string;
  clauses: string[];
  duration_ns: number;
  steps: number;
  exit_code?: number;
  signal?: number;
  exception?: Exception;
  stopped?: boolean;
  left?: boolean;
  complete: boolean;
  peak: Peak;
  growth_bytes_per_step?: number;
  growth_least_bytes?: number;
  not_looked_for?: string;
  looked_for?: string;
  nothing?: string;
  well?: boolean;
  step_time_ns?: number;
  main_source?: string;
}

export interface Finding {
  kind: string;
  severity: "critical" | "warning" | "info";
  title: string;
  text: string;
  advice?: string;
  process?: number;
  file?: string;
  line?: number;
  holder?: string;
  site_file?: string;
  site_line?: number;
  site_function?: string;
  stack?: Location[];
  bytes?: number;
  bytes_per_step?: number;
  error_bytes?: number;
  confidence?: number;
  phase?: string;
  label: Label;
}

export type Cell = string | number | null;
export interface Column {
  name: string;
  title: string;
  unit?: Unit;
  label?: Label;
}
/** Whose memory something shows; empty: the whole run's, or the machine's. */
export interface Subject {
  process?: number;
  device?: string;
  framework?: string;
  file?: string;
  device_number?: number;
  of?: string;
}
export interface Table extends Subject {
  name: string;
  title: string;
  note?: string;
  total_bytes?: number;
  columns: Column[];
  rows: Cell[][];
}

export interface Series extends Subject {
  name: string;
  title: string;
  unit: Unit;
  x_unit: Unit;
  label: Label;
  error?: number;
  x: number[];
  y: number[];
}
export interface PhaseBar {
  process: number;
  phase: string;
  name?: string;
  step: number;
  start_ns: number;
  end_ns: number;
}
export interface StepPoint {
  process: number;
  step: number;
  time_ns: number;
  rss_bytes?: number;
  kept_bytes?: number;
  heap_bytes?: number;
  device_bytes?: number;
}
export interface Mark {
  time_ns: number;
  kind: string;
  text: string;
  process?: number;
}

export interface Process {
  id: number;
  pid: number;
  parent?: number;
  role?: string;
  rank?: number;
  world_size?: number;
  python?: string;
  command?: string[];
  frameworks?: Record<string, string>;
  facts?: Record<string, string>;
}
export interface Run {
  id: string;
  name?: string;
  verb: string;
  label: Label;
  command: string[] | null;
  cwd?: string;
  version: string;
  host: {
    name?: string;
    cpu?: string;
    cpus: number;
    os?: string;
    memory_bytes?: number;
    memory_limit_bytes?: number;
    kernel?: string;
    gpus?: { name: string; memory_bytes?: number; driver?: string }[];
  };
  git?: { commit: string; branch?: string; dirty: boolean };
  start_wall_ns: number;
  tags?: Record<string, string>;
}

export interface StackSet extends Subject {
  name: string;
  title: string;
  label: Label;
  time_ns?: number;
  total_bytes: number;
  rest_bytes?: number;
  frames: (Location & { user?: boolean; source?: string })[];
  parents: number[];
  places: number[];
  stacks: {
    node: number;
    bytes: number;
    count: number;
    categories?: Record<string, number>;
    average_bytes?: number;
    allocations?: number;
    churn_bytes?: number;
    end_bytes?: number;
    first?: number;
  }[];
  measures?: { name: string; title: string; unit: Unit; total: number; rest?: number }[];
}

export interface TimelineBand {
  name: string;
  bytes: number[];
}
export interface SegmentMap {
  address: number;
  size_bytes: number;
  active_bytes: number;
  large: boolean;
  expandable?: boolean;
  stream: number;
  pool?: string;
  blocks: [size: number, state: number, category: number, node: number][];
}
export interface EventRange {
  from_event: number;
  to_event: number;
}
export interface Allocator {
  settings?: Record<string, string>;
  device: number;
  file: string;
  name?: string;
  events: number;
  label: Label;
  oom_event?: number;
  filter?: string;
  timeline?: {
    events: number[];
    time_ns?: number[];
    reserved_bytes?: (number | null)[];
    releasable_bytes?: number[];
    by_category: TimelineBand[];
    by_site: TimelineBand[];
  };
  steps?: { source: string; steps: EventRange[]; phases: (EventRange & { phase: string })[] };
  peak: { allocated_bytes: number };
  segment_map?: SegmentMap[] | null;
  map_categories?: string[];
  fragmentation?: {
    reserved_bytes: number;
    requested_bytes?: number;
    rounding_bytes?: number;
    waiting_bytes: number;
    releasable_bytes: number;
    pooled_bytes: number;
    stuck_bytes: number;
    inactive_split_bytes: number;
    empty_cache: { event: number; most_bytes: number; end_bytes: number };
  };
}

/** The verdict on a run on imaginary GPUs; of the fullest device. */
export interface Imagined {
  gpu_name: string;
  verdict: string;
  total_bytes: number;
  peak_allocated_bytes?: number;
  peak_reserved_bytes?: number;
  peak_device_used_bytes?: number;
  headroom_bytes?: number;
  categories?: { name: string; bytes: number }[];
}

/** The processes of a distributed program beside each other; what was not observed is absent. */
export interface Rank {
  process: number;
  rank: number;
  steps: number;
  step_time_ns?: number;
  work_ns?: number;
  work_error_ns?: number;
  behind_ns?: number;
  waiting_ns?: number;
  peak_rss_bytes?: number;
  loading_bytes?: number;
  peak_allocated_bytes?: number;
  peak_reserved_bytes?: number;
  peak_device_bytes?: number;
  growth_bytes_per_step?: number;
  growth_error_bytes?: number;
  device_growth_bytes_per_step?: number;
  device_growth_error_bytes?: number;
  failed_ns?: number;
  device_label: Label;
}
export interface Suspect {
  process: number;
  rank: number;
  aspect: "failed" | "work" | "device" | "host";
  title: string;
  text: string;
}
export interface Ranks {
  ranks: Rank[];
  suspects: Suspect[];
  not_compared?: string[];
}

export interface Report {
  version: number;
  run: Run;
  processes: Process[];
  headline: Headline;
  findings: Finding[];
  tables: Table[];
  series: Series[];
  phases: PhaseBar[];
  steps: StepPoint[];
  marks: Mark[];
  notes: string[];
  dropped: number;
  stacks?: StackSet[];
  allocators?: Allocator[];
  imagined?: Imagined;
  ranks?: Ranks;
}
