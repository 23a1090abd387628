package watch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/fleet"
)

// Outbox keeps what the server did not take yet, over a restart too. A report whose answer was lost is sent again as it
// was, under its number, so that the server counts it once; what was reserved since waits for the next one.
type Outbox struct {
	path string
	kept outboxFile
}

type outboxFile struct {
	Session string        `json:"session"`
	Number  int64         `json:"number"` // of the last report that was begun
	Sending *fleet.Report `json:"sending,omitempty"`
	State   fleet.State   `json:"state"` // the newest
	Used    []fleet.Used  `json:"used"`  // that is in no report yet
}

// mostUsed is how many rows one report has.
const mostUsed = 1000

// OpenOutbox reads what waits in a folder. A file that cannot be understood is begun anew.
func OpenOutbox(folder string) (*Outbox, error) {
	b := &Outbox{path: filepath.Join(folder, "watch.json")}
	text, err := os.ReadFile(b.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail.Unread("make it readable, or delete it", err)
	}
	if err != nil || json.Unmarshal(text, &b.kept) != nil || b.kept.Session == "" {
		b.kept = outboxFile{Session: rand.Text()}
	}
	return b, nil
}

// Add puts what was seen and reserved to what waits.
func (b *Outbox) Add(state fleet.State, used []fleet.Used) {
	b.kept.State = state
	for _, u := range used {
		at := slices.IndexFunc(b.kept.Used, func(old fleet.Used) bool { return old.Same(u) })
		if at < 0 {
			b.kept.Used = append(b.kept.Used, u)
		} else {
			b.kept.Used[at].Plus(u)
		}
	}
}

// Send sends what waits, the oldest first.
func (b *Outbox) Send(ctx context.Context, send func(context.Context, fleet.Report) error) error {
	for first := true; first || b.kept.Sending != nil || len(b.kept.Used) > 0; first = false {
		if b.kept.Sending == nil {
			n := min(len(b.kept.Used), mostUsed)
			b.kept.Number++
			b.kept.Sending = &fleet.Report{Session: b.kept.Session, Number: b.kept.Number,
				Used: append([]fleet.Used{}, b.kept.Used[:n]...)}
			b.kept.Used = slices.Delete(b.kept.Used, 0, n)
		}
		report := *b.kept.Sending
		report.State = b.kept.State // always the newest: an old one would be taken for what is so now
		if err := b.Save(); err != nil {
			return err
		}
		if err := send(ctx, report); err != nil {
			return err
		}
		b.kept.Sending = nil
	}
	return nil
}

// Save keeps what waits for the next start.
func (b *Outbox) Save() error {
	text, err := json.Marshal(&b.kept)
	if err != nil {
		return err
	}
	return files.Write(b.path, "keep what waits to be sent", func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
