package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lib/pq"
)

// How a network that is cut without a word is noticed. lib/pq asks the database to cancel a question whose context has
// ended, over another connection; where the network is gone it waits for the answer to the first one for good, and with
// it everybody who waits for the connection or for what it has locked.
//
//	this side   probes an idle connection, and closes one whose context ended and that is still used a while after
//	PostgreSQL  does the same for us (aliveThere), so that nobody waits for what a dead connection has locked

// alive are the probes of an idle connection.
var alive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// aliveThere are settings of a session of PostgreSQL. A transaction in which nobody says anything is one whose program
// was stopped: what it has locked is given free.
var aliveThere = []string{"SET idle_in_transaction_session_timeout = '15min'", "SET tcp_keepalives_idle = 10; " +
	"SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3", "SET tcp_user_timeout = 30000"}

// patience is how long one question may take.
const patience = 60 * time.Second

// cancelWithin is how long a question whose context has ended has to end by itself.
const cancelWithin = 2 * time.Second

// dialer makes connections that notice when the other side is gone.
func dialer() *net.Dialer {
	return &net.Dialer{Timeout: connectWithin, KeepAliveConfig: alive, Control: noticeLoss}
}

// connectWithin is how long a server may take to answer that it is there.
const connectWithin = 5 * time.Second

// connector makes connections to a database, each of which knows its socket.
type connector struct {
	address  string
	settings []string // of its sessions, besides aliveThere
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return &pq.Driver{} }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	of, err := pq.NewConnector(c.address)
	if err != nil {
		return nil, err
	}
	socket := &socketKeeper{}
	of.Dialer(socket)
	made, err := of.Connect(ctx)
	if err != nil {
		return nil, err
	}
	socket.made = true
	l := &link{made.(linked), socket.kept}
	for _, setting := range slices.Concat(aliveThere, c.settings) {
		var said *pq.Error
		if _, err := l.ExecContext(ctx, setting, nil); err != nil && !errors.As(err, &said) { // else its system has none
			l.Close()
			return nil, err
		}
	}
	return l, nil
}

// socketKeeper dials for lib/pq, and keeps the socket of the connection that is made. Later ones cancel a question.
type socketKeeper struct {
	kept net.Conn
	made bool
}

// Dial implements pq.Dialer.
func (k *socketKeeper) Dial(network, address string) (net.Conn, error) {
	return k.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (k *socketKeeper) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return k.DialContext(ctx, network, address)
}

// DialContext implements pq.DialerContext.
func (k *socketKeeper) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	made, err := dialer().DialContext(ctx, network, address)
	if err == nil && !k.made {
		k.kept = made
	}
	return made, err
}

// linked is what a connection of lib/pq does.
type linked interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// link is a connection that ends where it is still used a while after the context of its use has ended.
type link struct {
	linked
	socket net.Conn
}

// until closes the connection where it is still used a while after the context's end. Call stop when it is not.
func (l *link) until(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	stopped := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(cancelWithin):
			_ = l.socket.Close()
		}
	})
	return sync.OnceFunc(func() { stopped(); close(done) })
}

// ExecContext implements driver.ExecerContext.
func (l *link) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer l.until(ctx)()
	return l.linked.ExecContext(ctx, query, args)
}

// Ping implements driver.Pinger.
func (l *link) Ping(ctx context.Context) error {
	defer l.until(ctx)()
	return l.linked.Ping(ctx)
}

// QueryContext implements driver.QueryerContext.
func (l *link) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	stop := l.until(ctx)
	rows, err := l.linked.QueryContext(ctx, query, args)
	if err != nil {
		stop()
		return nil, err
	}
	return linkedRows{rows.(driver.RowsNextResultSet), stop}, nil
}

// linkedRows are read from a link, until they are closed.
type linkedRows struct {
	driver.RowsNextResultSet
	stop func()
}

// Close implements driver.Rows.
func (r linkedRows) Close() error {
	defer r.stop()
	return r.RowsNextResultSet.Close()
}

// BeginTx implements driver.ConnBeginTx.
func (l *link) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	defer l.until(ctx)()
	tx, err := l.linked.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return linkedTx{tx, l}, nil
}

// linkedTx is a transaction, whose end has no context of its own.
type linkedTx struct {
	driver.Tx
	link *link
}

// Commit implements driver.Tx.
func (t linkedTx) Commit() error { return t.end(t.Tx.Commit, patience) }

// Rollback implements driver.Tx.
func (t linkedTx) Rollback() error { return t.end(t.Tx.Rollback, connectWithin) }

func (t linkedTx) end(end func() error, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	defer t.link.until(ctx)()
	return end()
}
