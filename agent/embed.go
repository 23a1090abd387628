// Package agent carries the Python part of hightide into the Go binary. That is the hook folder that goes
// on PYTHONPATH, and the package it starts, which observes a training from inside its process.
//
//	python/src/hook/sitecustomize.py ──▶ python/src/hightide_agent ──▶ channel (shared memory)
//
// This file is only the door; python/src/hightide_agent/__init__.py says where to start reading.
package agent

import (
	"embed"
	"io/fs"
)

// Without `all:` files whose names begin with an underscore would be left out silently.
//
//go:embed all:python/src
var source embed.FS

// Source holds the folders `hook` (for PYTHONPATH) and `hightide_agent`, which belong side by side.
func Source() fs.FS {
	tree, err := fs.Sub(source, "python/src")
	if err != nil {
		panic(err) // the path above is a constant that embed has checked
	}
	return tree
}
