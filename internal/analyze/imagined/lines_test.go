package imagined

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// TestBlockOfAProgram: the block that was asked for with the size of a program's temporaries, and is alive at the peak, is
// taken out of its stack, once; what it was given beyond that stays there.
func TestBlockOfAProgram(t *testing.T) {
	alloc, free := mem.ActionAlloc, mem.ActionFreeCompleted
	d := &usage.Device{History: &usage.History{}, Trace: &mem.Trace{
		Action: []mem.Action{alloc, free, mem.ActionOOM, alloc, alloc, alloc}, Address: []uint64{8, 8, 64, 8, 64, 128},
		Size: []mem.Bytes{512, 512, 1, 512, 100, 512}, Asked: []mem.Bytes{500, 0, 0, 500, 0, 0}, Stack: []uint32{1, 1, 1, 2, 3, 4},
	}}
	d.Peak.Moment = 5
	uses := []usage.Use{{Stack: 2, Bytes: 712, Blocks: 2}, {Stack: 3, Bytes: 100, Blocks: 1}, {Stack: 4, Bytes: 512, Blocks: 1}}
	left, within := without(uses, d, 500)
	if !within || left[0].Bytes != 212 || left[0].Blocks != 2 || uses[0].Bytes != 712 {
		t.Errorf("%v %+v, of %+v", within, left, uses)
	}
	left, within = without(uses, d, 100)
	if !within || len(left) != 2 || left[1].Stack != 4 {
		t.Errorf("%v %+v", within, left)
	}
	for _, asked := range []mem.Bytes{0, 499, 612} {
		if left, within := without(uses, d, asked); within || len(left) != 3 {
			t.Errorf("%v: %v %+v", asked, within, left)
		}
	}
}
