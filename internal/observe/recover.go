package observe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"hightide/internal/mem"
)

// Recover adds what a leftover holds to its recording and closes it; run is the recording so far,
// outDir its folder. What the channels still hold is taken as the dead engine would have taken it,
// with what that had saved of its state. The folder is deleted.
//
// The channels are a stranger's memory, so they are read once: where that ended this program, the next
// recovery closes the recording without them. A sink that failed gets them again.
func Recover(l Leftover, run *mem.Run, outDir string, sink Sink) error {
	r := newRecorder(&Options{ID: l.ID, Label: run.Info.Label, Channels: l.Dir, OutDir: outDir}, sink)
	r.recovering = true
	r.lastKnown = lastSample(run)
	r.resume(run)
	tried := filepath.Join(l.Dir, triedFile)
	if first, err := markTried(tried); err != nil {
		return fmt.Errorf("recover run %s: %w", l.ID, err)
	} else if first {
		r.scan()
	} else {
		r.log(0, "what the processes wrote after the end of their engine is lost: reading it failed once")
	}
	for _, p := range r.order {
		if len(p.channels) > 0 {
			r.drain(p, true)
			r.release(p, r.lastKnown)
		}
	}
	r.flush(true)
	if run.End == nil {
		r.emit(mem.End{Time: r.lastKnown, Reason: "recovered"})
	}
	if r.fail == nil {
		r.fail = sink.Flush()
	}
	if r.fail != nil {
		return errors.Join(fmt.Errorf("recover run %s: %w", l.ID, r.fail), os.Remove(tried))
	}
	return os.RemoveAll(l.Dir)
}

// triedFile in a folder of channels says that its channels have been read for a recovery.
const triedFile = "tried"

// markTried makes that file, and says whether it was not there.
func markTried(path string) (first bool, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

func (r *Recorder) byID(id uint32) *process {
	if id == 0 || int(id) > len(r.order) {
		return nil
	}
	return r.order[id-1]
}

// lastSample is the newest thing that a recording knows of.
func lastSample(run *mem.Run) int64 {
	last := run.Start()
	for _, s := range run.Series {
		if n := len(s.Times); n > 0 {
			last = max(last, s.Times[n-1])
		}
	}
	for _, s := range run.Steps {
		last = max(last, s.Time)
	}
	return last
}
