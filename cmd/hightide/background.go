package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/system"
)

// inBackground starts the same command in a session of its own, without our streams, so that neither the terminal nor
// who started us has to do with it. With --ready-fd its caller hears from it; else we do, and say what it is recorded
// as.
func (o *attachOptions) inBackground(a *app) error {
	ready := os.NewFile(uintptr(max(o.readyFD, 0)), "ready")
	told := (*os.File)(nil)
	if o.readyFD < 0 {
		var err error
		if told, ready, err = os.Pipe(); err != nil {
			return fmt.Errorf("start in the background: %w", err)
		}
		defer told.Close()
	}
	engine := exec.Command("/proc/self/exe", append(append(withoutDetach(os.Args[1:]), o.chosen...), "--quiet",
		"--ready-fd=3")...)
	engine.Args[0] = os.Args[0]
	engine.ExtraFiles = []*os.File{ready}
	engine.SysProcAttr = system.OwnSession()
	err := engine.Start()
	ready.Close()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	if told == nil {
		return nil
	}
	return o.hear(a, told)
}

// hear waits for the line and passes it on to a person.
func (o *attachOptions) hear(a *app, from *os.File) error {
	var line struct {
		engine.Attached
		failure
	}
	text, err := bufio.NewReader(from).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &line)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the recorder in the background ended before it began: %w", err)
	case line.Error != "":
		return &fail.Error{Code: line.Code, Err: errors.New(line.Error), Hint: line.Hint}
	case o.quiet:
		return nil
	}
	_, err = fmt.Fprintf(a.stdout, "Recording as %s. Status: hightide show %s. To end it: kill %d\n", line.RunID,
		line.RunID, line.Engine)
	return err
}

// withoutDetach are the words of a command line without the flag that brought us here, and those that are given anew.
func withoutDetach(words []string) (left []string) {
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--ready-fd":
			i++
		case word == "--detach" || word == "--background" || strings.HasPrefix(word, "--background=") ||
			strings.HasPrefix(word, "--detach=") || strings.HasPrefix(word, "--ready-fd="):
		default:
			left = append(left, word)
		}
	}
	return left
}
