package mcp

import (
	"hightide/internal/engine"
)

// Options say what an assistant may do; the zero value starts no program of the user's.
type Options struct {
	// AllowExec lets tools run commands that the assistant names, with the rights of this process.
	AllowExec bool

	// Env is the environment of what is started.
	Env []string

	// Folders are those whose files may be read, besides the one in which the server was started and that of the
	// recordings.
	Folders []string
}

// door is what the tools share.
type door struct {
	Options
	engine *engine.Engine
	inputs map[string]parameters // by tool
}
