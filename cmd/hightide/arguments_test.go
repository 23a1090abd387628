package main

import "testing"

// TestTakes: what is said that a command takes is in its usage, without flags.
func TestTakes(t *testing.T) {
	for use, want := range map[string]string{
		"check --budget FILE SNAPSHOT|RUN [--baseline SNAPSHOT|RUN] [--json[=FILE]] [--server URL]": "SNAPSHOT|RUN",
		"diff A B [--by site|module|category] [--html FILE | --json[=FILE] | --markdown[=FILE]]":    "A B",
		"share [RUN [--lasts 168h | --revoke N]]":                                                   "[RUN]",
		"comment RUN [TEXT | --remove ID]":                                                          "RUN [TEXT]",
		"attach PID [flags]":                                                                        "PID",
		"info":                                                                                      "no argument",
	} {
		if got := takenBy(use); got != want {
			t.Errorf("%s: %q, want %q", use, got, want)
		}
	}
}
