package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hightide/internal/system"
)

// queue keeps requests on disk, in order, until a receiver has taken them. It outlives this process, killed or not: a
// request is a file of its own, which is there whole or not at all. Where it is full the oldest go.
type queue struct {
	dir   string
	limit int64    // bytes
	owned *os.File // locked: one process at a time sends from a queue

	lock    sync.Mutex
	waiting []request // oldest first
	bytes   int64
	dropped uint64 // requests that went unsent, for lack of room
	next    uint64
	filled  chan struct{} // has a value where something was put
}

// request is a file of the queue, named after its number.
type request struct {
	number uint64
	size   int64
}

// errTaken says that another process sends from this queue.
var errTaken = errors.New("another process has the queue")

const (
	bodySuffix = ".request"
	partSuffix = ".part"
)

// openQueue opens the queue in a folder, which is there, with what an earlier process left. limit is in bytes.
func openQueue(dir string, limit int64) (*queue, error) {
	owned, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	q := &queue{dir: dir, limit: limit, owned: owned, filled: make(chan struct{}, 1)}
	if err = system.Lock(owned, false); errors.Is(err, system.ErrLocked) {
		err = errTaken
	}
	if err == nil {
		err = q.findRequests()
	}
	if err != nil {
		owned.Close()
		return nil, err
	}
	return q, nil
}

// findRequests takes what an earlier process left, but for what it was writing when it died.
func (q *queue) findRequests() error {
	entries, err := os.ReadDir(q.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), partSuffix) {
			_ = os.Remove(filepath.Join(q.dir, entry.Name()))
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(entry.Name(), bodySuffix), 10, 64)
		info, unreadable := entry.Info()
		if err != nil || unreadable != nil || !info.Mode().IsRegular() {
			continue
		}
		q.waiting = append(q.waiting, request{number, info.Size()})
		q.bytes += info.Size()
		q.next = max(q.next, number+1)
	}
	slices.SortFunc(q.waiting, func(a, b request) int { return int(int64(a.number - b.number)) })
	if len(q.waiting) > 0 {
		q.filled <- struct{}{}
	}
	return nil
}

// takeOver moves what waits in another folder to the end of this queue, unless a process sends from there or there is
// no such folder.
func (q *queue) takeOver(dir string) {
	if _, err := os.Stat(dir); err != nil {
		return
	}
	other, err := openQueue(dir, q.limit)
	if err != nil {
		return
	}
	defer other.close()
	for number, body, ok := other.first(); ok; number, body, ok = other.first() {
		if q.putRequest(body) != nil {
			return // it stays there
		}
		other.done(number)
	}
}

func (q *queue) path(number uint64, suffix string) string {
	return filepath.Join(q.dir, fmt.Sprintf("%020d%s", number, suffix))
}

// putRequest adds a request at the end. Where the disk is full, or the request larger than the queue, it is not taken.
func (q *queue) putRequest(body []byte) error {
	q.lock.Lock()
	defer q.lock.Unlock()
	size := int64(len(body))
	if size > q.limit {
		q.dropped++
		return fmt.Errorf("a request of %d bytes is larger than the queue", size)
	}
	for q.bytes+size > q.limit {
		q.dropped++
		q.removeFirst()
	}
	part := q.path(q.next, partSuffix)
	err := os.WriteFile(part, body, 0o600)
	if err == nil {
		err = os.Rename(part, q.path(q.next, bodySuffix))
	}
	if err != nil {
		_ = os.Remove(part)
		q.dropped++
		return err
	}
	q.waiting = append(q.waiting, request{q.next, size})
	q.bytes += size
	q.next++
	select {
	case q.filled <- struct{}{}:
	default: // it is known already that there is something
	}
	return nil
}

// first is the oldest request; false: there is none.
func (q *queue) first() (number uint64, body []byte, ok bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for len(q.waiting) > 0 {
		number = q.waiting[0].number
		body, err := os.ReadFile(q.path(number, bodySuffix))
		if err == nil {
			return number, body, true
		}
		if !errors.Is(err, fs.ErrNotExist) { // somebody removed it: that is their right
			q.dropped++
		}
		q.removeFirst()
	}
	return 0, nil, false
}

// done removes a request that first gave, unless it went meanwhile for lack of room.
func (q *queue) done(number uint64) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if len(q.waiting) > 0 && q.waiting[0].number == number {
		q.removeFirst()
	}
}

func (q *queue) removeFirst() {
	_ = os.Remove(q.path(q.waiting[0].number, bodySuffix))
	q.bytes -= q.waiting[0].size
	q.waiting = q.waiting[1:]
}

// state is how much waits, and how many requests were dropped so far.
func (q *queue) state() (requests int, bytes int64, dropped uint64) {
	q.lock.Lock()
	defer q.lock.Unlock()
	return len(q.waiting), q.bytes, q.dropped
}

func (q *queue) close() { _ = q.owned.Close() }
