package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hightide/internal/server"
)

// TestServeAnswersWhoWasAccepted: a server that ends answers who asks on a connection that it had accepted. One that is
// kept from an earlier request is closed.
func TestServeAnswersWhoWasAccepted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }),
			server.Room{})
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	ask := func(c net.Conn) error {
		if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
			return err
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	early, kept := dial(), dial()
	if err := ask(kept); err != nil { // which was accepted after the early one
		t.Fatal(err)
	}
	end()
	waitFor(t, func() bool {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if _, err := kept.Read(make([]byte, 1)); err == nil { // by now the server ends
		t.Error("a kept connection is open")
	}
	if err := ask(early); err != nil {
		t.Errorf("accepted, and not answered: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPanicsAreTold: a fault of the server's own is told where it runs, and what strangers send is not.
func TestPanicsAreTold(t *testing.T) {
	var told bytes.Buffer
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("lost") }))
	front.Config.ErrorLog = log.New(panics{&told}, "", 0)
	front.Start()
	if answer, err := http.Get(front.URL); err == nil {
		answer.Body.Close()
		t.Error(answer.Status)
	}
	front.Config.ErrorLog.Print("http: superfluous")
	front.Close()
	if text := told.String(); !strings.Contains(text, ": lost\n") || strings.Contains(text, "superfluous") {
		t.Error(text)
	}
}
