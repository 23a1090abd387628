package main

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/system"
)

// run --ui: the page of the run, while it runs and for as long afterwards as somebody looks at it.
//
//	hightide run --ui ──▶ a server that shows this data directory already, else one in the background ──▶ the browser

// uiIdle is how long a server in the background goes on when nobody looks.
const uiIdle = 10 * time.Minute

// opening tells the view of a run what happens, and opens the run's page once it has an id.
func (a *app) opening(tell event.Sink) event.Sink {
	return func(e event.Event) {
		if begun, ok := e.(engine.Begun); ok {
			go a.openRun(begun.RunID) // the program does not wait for it
		}
		tell(e)
	}
}

// openRun opens the page of a run.
func (a *app) openRun(id string) {
	address, err := a.uiOfRun("/runs/" + url.PathEscape(id))
	if err == nil {
		fmt.Fprintf(a.stderr, "hightide: the run is shown at %s\n", address)
		err = a.openPrivately(address)
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "hightide: cannot show the run in a browser: %v\n", err)
	}
}

// uiOfRun is the address of a page, on a server that is there already or on one in the background.
func (a *app) uiOfRun(page string) (string, error) {
	if a.engine().Shared() == "" { // those show the data directory
		for _, door := range a.doors() {
			if address, err := door.address(page); err == nil {
				return address, nil
			}
		}
	}
	address, err := a.uiInBackground()
	return pageAt(address, page), err
}

// uiInBackground starts a server that neither the terminal nor this process has to do with, and gives its address.
func (a *app) uiInBackground() (string, error) {
	told, ready, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer told.Close()
	server := exec.Command("/proc/self/exe", "ui", "--addr", "127.0.0.1:0", "--idle", uiIdle.String(), "--ready-fd=3",
		"--data-dir", a.engine().Dir())
	server.Args[0] = os.Args[0]
	server.Env = append(os.Environ(), "HIGHTIDE_STORE="+a.engine().Shared()) // no argument: it may hold a password
	if a.objects != "" {
		server.Env = append(server.Env, "HIGHTIDE_OBJECTS="+a.objects)
	}
	server.ExtraFiles = []*os.File{ready}
	server.SysProcAttr = system.OwnSession()
	err = server.Start()
	ready.Close()
	if err != nil {
		return "", err
	}
	go func() { _ = server.Wait() }()
	address, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the server ended before it began: %w", err)
	}
	return strings.TrimSpace(address), nil
}
