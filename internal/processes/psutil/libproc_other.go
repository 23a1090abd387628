//go:build !darwin

package psutil

import "hightide/internal/processes"

// askLibproc has nothing to ask.
func askLibproc(int, *processes.Figures) {}
