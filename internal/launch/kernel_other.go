//go:build !linux

package launch

import (
	"errors"
	"os"
)

// A process that is not ours has no descriptor here: its end is looked for.

func openProcess(int) (int, error) { return -1, errors.ErrUnsupported }

func closeProcess(int) error { return nil }

func awaitEnd(int, *os.File) (ended bool, err error) { return false, errors.ErrUnsupported }
