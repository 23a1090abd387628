package server

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// requestsAtOnce is how many are served at once at most: a stream of events is one for as long as it lasts, and takes
// some 100 KB.
const requestsAtOnce = 1000

// Room is what a server takes at once, as the descriptors of its process allow: some are kept for files, and some for
// telling who comes too late. The zero value is the most.
type Room struct {
	Descriptors int // that the process may have; 0: more than are ever needed
	Connections int // that are accepted; who else comes waits for one to end
	Requests    int
	Streams     int // of events, which last; the others of Requests are for what is answered soon
}

// RoomOf is the room in a process that may have so many descriptors.
func RoomOf(descriptors int) Room {
	kept := max(descriptors/4, 24)
	r := Room{Descriptors: descriptors, Requests: min(max(descriptors-kept, 8), requestsAtOnce)}
	if r.Requests == requestsAtOnce {
		r.Descriptors = 0
	}
	r.Connections = r.Requests + kept/3
	r.Streams = r.Requests - r.Requests/8
	return r
}

// full says in a line why a request is not served beside those under way; "": it is.
func (r *Room) full(now int, stream bool, streams int64) string {
	what, most := "requests are under way", cmp.Or(r.Requests, requestsAtOnce)
	if stream && streams > int64(cmp.Or(r.Streams, most)) {
		what, now, most = "streams of events are open", int(streams), r.Streams
	}
	switch {
	case now <= most:
		return ""
	case r.Descriptors > 0:
		return fmt.Sprintf("%d %s, as many as %d open files allow (close pages that nobody looks at, or raise the limit: "+
			"ulimit -n)", most, what, r.Descriptors)
	}
	return fmt.Sprintf("%d %s, more than this server serves at once (close pages that nobody looks at)", now, what)
}

// Lasts says whether the answer of a request goes on until one of both ends it.
func Lasts(r *http.Request) bool { return isStream(r) }

// isStream says whether the answer of a request lasts.
func isStream(r *http.Request) bool {
	return isAPI(r) && (strings.HasSuffix(r.URL.Path, "/live") ||
		strings.HasPrefix(r.URL.Path, "/api/v1/jobs/") && strings.HasSuffix(r.URL.Path, "/events"))
}

// Listen has a listener accept no more connections than there is room for: files need descriptors too.
func (r Room) Listen(l net.Listener) net.Listener {
	if r.Connections == 0 {
		return l
	}
	closed := make(chan struct{})
	return &roomy{l, make(chan struct{}, r.Connections), closed, sync.OnceFunc(func() { close(closed) })}
}

type roomy struct {
	net.Listener
	taken  chan struct{}
	closed chan struct{}
	close  func()
}

func (l *roomy) Close() error {
	l.close()
	return l.Listener.Close()
}

func (l *roomy) Accept() (net.Conn, error) {
	select {
	case l.taken <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.taken
		return nil, err
	}
	return &roomyConn{Conn: c, free: sync.OnceFunc(func() { <-l.taken })}, nil
}

type roomyConn struct {
	net.Conn
	free func()
}

func (c *roomyConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// Door is the front door of a server, which counts its connections.
type Door struct {
	front *http.Server
	most  int64 // connections on which one may ask again; 0: any number
	open  atomic.Int64
	ends  atomic.Bool
}

// Watch has a front door close connections on which nothing is asked while more are open than requests are served.
func (r Room) Watch(front *http.Server) *Door {
	d := &Door{front: front, most: int64(r.Requests)}
	front.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			d.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			d.open.Add(-1)
		}
		d.keep()
	}
	return d
}

// keep says whether connections are kept for another request. Those that wait for one are closed where they are not.
func (d *Door) keep() {
	d.front.SetKeepAlivesEnabled(!d.ends.Load() && (d.most == 0 || d.open.Load() <= d.most))
}

// End answers once more on each connection that was accepted, until the context ends: nobody listens any more. The
// server's own Shutdown drops a request that comes after it, also on a connection of before it.
func (d *Door) End(ctx context.Context) {
	d.ends.Store(true)
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for d.open.Load() > 0 && ctx.Err() == nil {
		d.keep()
		select {
		case <-ctx.Done():
		case <-often.C:
		}
	}
	_ = d.front.Close()
}
