package trace

import (
	"fmt"
	"math/bits"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// leastPinned is how much rounding may take of the host before it is worth a word.
const leastPinned = 64 * mem.MiB

// pinnedRounding says what PyTorch's rounding may take of pinned host memory: it rounds each request up to a power of
// two, and records the result. So what was asked for is between half of a block and all of it. Nil: blocks are of
// other sizes, or little is at stake.
func pinnedRounding(d *usage.Device, at int) *report.Finding {
	if d.Number != mem.HostDevice || !d.Snapshot.NoRequests {
		return nil
	}
	var held mem.Bytes
	most := -1
	d.Each(at, func(n int) {
		if bits.OnesCount64(uint64(d.Bytes[n])) != 1 {
			return
		}
		if held += d.Bytes[n]; most < 0 || d.Bytes[n] > d.Bytes[most] {
			most = n
		}
	})
	if held/2 < leastPinned {
		return nil
	}
	f := &report.Finding{Kind: report.KindFragmentation, Severity: report.Info, Label: d.Label,
		Bytes: mem.Some(int64(held)),
		Title: fmt.Sprintf("pinned host memory is rounded up: %v may be for little more than %v", held, held/2),
		Text: fmt.Sprintf("%v of pinned host memory lie in blocks whose sizes are powers of two. PyTorch rounds each "+
			"request up to one, and records the result: "+
			"what was asked for is not in the file, and lies between %v and %v. The largest block has %v.", held, held/2, held,
			d.Bytes[most]),
		Advice: "Compare with the sizes of your pinned tensors. PYTORCH_CUDA_ALLOC_CONF=pinned_max_round_threshold_mb:64 " +
			"keeps PyTorch (2.13 and later) from rounding requests above 64 MiB; " +
			"or pin a little less than a power of two.",
	}
	if held/2 >= mem.GiB {
		f.Severity = report.Warning
	}
	return f
}
