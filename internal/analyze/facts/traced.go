package facts

import "hightide/internal/mem"

// HeapTraced says whether the lines of the run are those of Python's memory alone, as tracemalloc told.
func (in *Facts) HeapTraced() bool {
	for process := range in.Run.Heap {
		if in.Run.Process(process).HeapTraced() {
			return true
		}
	}
	return false
}

// HeapLabel is how what the lines hold was obtained.
func (in *Facts) HeapLabel() mem.Label {
	if in.HeapTraced() {
		return mem.Measured
	}
	return mem.Sampled
}

// HeapName is what the lines are lines of.
func (in *Facts) HeapName() string {
	if in.HeapTraced() {
		return "Python memory that tracemalloc sees"
	}
	return "sampled heap"
}
