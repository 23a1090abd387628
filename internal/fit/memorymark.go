package fit

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/mem"
)

// MemoryMark holds the fields of MemoryMark's API, of the same meaning. What it computes from batch
// sizes alone and calls speed-up is here only where time was measured.
type MemoryMark struct {
	Model          string           `json:"model_name" doc:"The model."`
	Device         string           `json:"device" doc:"The device: cuda, or cpu where there is no GPU."`
	TotalGB        float64          `json:"gpu_total_gb" doc:"The device's memory in GB."`
	OptimalBatch   int              `json:"optimal_batch_size" doc:"The largest batch that fits."`
	OptimalGB      float64          `json:"optimal_memory_gb" doc:"What it takes, in GB."`
	CurrentBatch   int              `json:"current_batch_size" doc:"The batch in use now."`
	CurrentGB      *float64         `json:"current_memory_gb" doc:"What that takes, in GB; null: not known."`
	CurrentLabel   mem.Label        `json:"current_memory_label,omitempty" doc:"How that is known, where it is an estimate; MemoryMark has no such field."`
	CurrentErrorGB *float64         `json:"current_memory_error_gb,omitempty" doc:"The error of that estimate in GB; MemoryMark has no such field."`
	WasteGB        float64          `json:"waste_gb" doc:"What the batch in use leaves, in GB."`
	WastePercent   float64          `json:"waste_percent" doc:"The same in percent of the device."`
	Speedup        *float64         `json:"speedup" doc:"How much faster the largest batch is; null: time was not measured."`
	SavingsPerYear *float64         `json:"cost_savings_annual" doc:"What that saves in a year, in USD; null: time was not measured."`
	Results        []MemoryMarkSize `json:"results" doc:"Its trials."`
}

// MemoryMarkSize is one of its trials.
type MemoryMarkSize struct {
	Batch   int      `json:"batch_size" doc:"The batch."`
	GB      *float64 `json:"memory_gb" doc:"What it took, in GB; null: not known."`
	Success bool     `json:"success" doc:"Whether it fits."`
}

// memoryMarkHours are the GPU hours of MemoryMark's year: its published savings at 0.60 USD an hour
// are 120 USD times the share of time saved.
const memoryMarkHours = 200

const gibibyte = 1 << 30 // MemoryMark's "GB"

func gigabytes(bytes int64) float64 { return float64((bytes*100+gibibyte/2)/gibibyte) / 100 }

func (r *Result) memoryMark() *MemoryMark {
	best, ok := r.best()
	total, known := r.Total.Get()
	if !ok || !known || !best.Allocated.Known() {
		return nil
	}
	m := &MemoryMark{
		Model: r.Worker.Model, Device: r.Device, TotalGB: gigabytes(total), OptimalBatch: best.Batch,
		OptimalGB:    gigabytes(best.Allocated.Or(0)),
		CurrentBatch: r.Current, WasteGB: gigabytes(total - best.Allocated.Or(0)), Results: []MemoryMarkSize{},
		WastePercent: float64(int64(1000*float64(total-best.Allocated.Or(0))/float64(total)+0.5)) / 10,
	}
	if m.Device == "imaginary" {
		m.Device = "cuda"
	}
	if current, ok := r.between(r.Current, func(t Trial) mem.Optional { return t.Allocated }); ok {
		gb := gigabytes(current.bytes)
		m.CurrentGB = &gb
		if most, estimate := current.error.Get(); estimate {
			most := math.Ceil(float64(most)*100/gibibyte) / 100
			m.CurrentLabel, m.CurrentErrorGB = current.label, &most
		}
	}
	now, ok1 := r.rate(r.Current)
	then, ok2 := r.rate(best.Batch)
	if ok1 && ok2 {
		speedup := then / now
		m.Speedup = &speedup
		if r.Cost != nil {
			saved := r.Cost.PerHour * memoryMarkHours * (1 - 1/speedup)
			m.SavingsPerYear = &saved
		}
	}
	sorted := slices.SortedFunc(slices.Values(r.Trials), func(a, b Trial) int { return cmp.Compare(a.Batch, b.Batch) })
	for _, t := range sorted {
		size := MemoryMarkSize{Batch: t.Batch, Success: t.OK}
		if bytes, ok := t.Allocated.Get(); ok && t.OK {
			gb := gigabytes(bytes)
			size.GB = &gb
		}
		m.Results = append(m.Results, size)
	}
	return m
}

// AsMemoryMark is the result as MemoryMark itself gives it. Its speed-up is the largest batch by the current one,
// whether that saves time or not, and its savings follow from that at the GPU's price. nil where nothing fits.
func (r *Result) AsMemoryMark() *MemoryMark {
	if r.MemoryMark == nil {
		return nil
	}
	m := *r.MemoryMark
	if m.CurrentBatch > 0 {
		speedup := tenths(float64(m.OptimalBatch) / float64(m.CurrentBatch))
		m.Speedup = &speedup
	}
	if r.Cost != nil && m.Speedup != nil && *m.Speedup > 0 {
		saved := math.Round(100*r.Cost.PerHour*memoryMarkHours*(1 - 1 / *m.Speedup)) / 100
		m.SavingsPerYear = &saved
	}
	m.TotalGB, m.WasteGB = tenths(m.TotalGB), tenths(m.WasteGB)
	return &m
}

func tenths(x float64) float64 { return math.Round(10*x) / 10 }
