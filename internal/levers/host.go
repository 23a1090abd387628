package levers

import (
	"slices"
	"strings"
)

// OfHost are the levers that save memory of the host, in the order in which they are tried.
var OfHost = []string{SharedData, Malloc, Ahead, Workers}

// Host says whether the lever saves memory of the host.
func (l *Lever) Host() bool {
	return l.Name == SharedData || l.Name == Malloc || l.Name == Ahead || l.Name == Workers
}

// mallocSettings are variables of glibc's allocator. Fixed thresholds keep it from raising them itself, after which
// memory that is free stays with the process.
var mallocSettings = map[string]string{"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072",
	"MALLOC_TRIM_THRESHOLD_": "131072"}

// Variables are what the plan sets in the program's environment beside the settings of PyTorch's allocator; what is set
// there stays.
func (p *Plan) Variables(env []string) map[string]string {
	variables := map[string]string{}
	if !p.has(Malloc) {
		return variables
	}
	for name, value := range mallocSettings {
		if !slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			variables[name] = value
		}
	}
	return variables
}
