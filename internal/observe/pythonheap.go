package observe

import (
	"slices"

	"hightide/internal/mem"
)

// pythonHeap is what tracemalloc knows of a process at a moment, as the agent tells it: all that Python holds. A row is
// the bytes and blocks of a stack, then the index of a file and a line for each place, innermost first.
type pythonHeap struct {
	Files   []string     `json:"files"`
	Sites   [][]int64    `json:"sites"`
	Rest    [2]int64     `json:"rest"` // bytes and blocks of the stacks that have no row
	Peak    mem.Optional `json:"peak_bytes"`
	Own     mem.Optional `json:"own_bytes"`
	Looks   mem.Optional `json:"looks_ns"`
	Longest mem.Optional `json:"longest_ns"`
}

// tracedFrames is how many places of a stack tracemalloc keeps. Each takes memory and time: what a start of PyTorch
// took of a processor was 7 s without it, 16 s with one place, and 58 s with eight.
const tracedFrames = 1

// mostTraced is how much a stack can hold: what a program says beyond that is wrong.
const mostTraced = int64(1) << 50

// sound says whether each row is one.
func (h *pythonHeap) sound() bool {
	held := func(n int64) bool { return n >= 0 && n <= mostTraced }
	for _, row := range h.Sites {
		if len(row) < 4 || len(row)%2 != 0 || slices.ContainsFunc(row, func(n int64) bool { return !held(n) }) {
			return false
		}
		for i := 2; i < len(row); i += 2 {
			if row[i] >= int64(len(h.Files)) || row[i+1] > 1<<31-1 {
				return false
			}
		}
	}
	return held(h.Rest[0]) && held(h.Rest[1])
}

// places are those of a row's stack.
func (h *pythonHeap) places(row []int64) []mem.Location {
	stack := make([]mem.Location, 0, len(row)/2-1)
	for i := 2; i < len(row); i += 2 {
		stack = append(stack, mem.Location{File: h.Files[row[i]], Line: int(row[i+1])})
	}
	return stack
}
