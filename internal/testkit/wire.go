package testkit

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Wire is a network between a program and a server. It can be cut.
type Wire struct {
	network, to string
	listener    net.Listener

	mu    sync.Mutex
	state wireState
	ends  map[net.Conn]bool // of connections, both sides
}

type wireState int

const (
	whole  wireState = iota
	cut              // whoever uses it is told so
	silent           // nothing arrives, and nobody is told
)

// NewWire leads from an address of its own to a server, until the test ends.
func NewWire(t testing.TB, network, to string) *Wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{network: network, to: to, listener: listener, ends: map[net.Conn]bool{}}
	t.Cleanup(func() { listener.Close(); w.become(cut) })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go w.lead(near)
		}
	}()
	return w
}

// Address is what to connect to in place of the server.
func (w *Wire) Address() *net.TCPAddr { return w.listener.Addr().(*net.TCPAddr) }

// Cut ends all connections, and refuses others.
func (w *Wire) Cut() { w.become(cut) }

// Silence swallows all that is sent. Connections are made, and nothing comes of them.
func (w *Wire) Silence() { w.become(silent) }

// Mend leads connections on as before. Those of before have ended.
func (w *Wire) Mend() { w.become(cut); w.become(whole) }

func (w *Wire) become(state wireState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state = state; state == cut {
		for end := range w.ends {
			end.Close()
		}
		clear(w.ends)
	}
}

// hold keeps ends of connections to close them, and says how things are.
func (w *Wire) hold(ends ...net.Conn) wireState {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range ends {
		if w.state == cut {
			end.Close()
		} else {
			w.ends[end] = true
		}
	}
	return w.state
}

func (w *Wire) lead(near net.Conn) {
	if w.hold(near) != whole {
		return
	}
	far, err := net.Dial(w.network, w.to)
	if err != nil {
		near.Close()
		return
	}
	if w.hold(far) == cut {
		near.Close()
		return
	}
	go w.carry(near, far)
	w.carry(far, near)
}

// carry carries what comes from one end to the other.
func (w *Wire) carry(from, to net.Conn) {
	data := make([]byte, 64<<10)
	for {
		n, err := from.Read(data)
		switch {
		case w.hold() == silent:
			if err != nil {
				return // the other end does not hear of it
			}
		case err != nil:
			if half, is := to.(interface{ CloseWrite() error }); is && err == io.EOF {
				_ = half.CloseWrite()
			} else {
				to.Close()
			}
			return
		default:
			_, _ = to.Write(data[:n])
		}
	}
}
