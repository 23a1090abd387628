package trace

import (
	"fmt"
	"slices"
	"strings"
)

// FileKind is a kind of file by what it can tell, in words.
type FileKind string

// The kinds.
const (
	SnapshotFile  FileKind = "an allocator snapshot"
	SnapshotRun   FileKind = "a run with a snapshot"
	BareRecording FileKind = "a recording without an allocator snapshot"
	ProfileFile   FileKind = "a memory profile of another tool"
	MappingsFile  FileKind = "a list of mappings"
	ModelFile     FileKind = "a model"
	NodesFile     FileKind = "a profile of a model's nodes"
	TextFile      FileKind = "a text"
)

// Flags are the options of explain by the names of its flags. Snapshots answer each, profiles and mappings
// some. One that no file answers would do nothing, without a word.
var (
	Flags      = []string{"device", "range", "at", "by", "top", "filter", "rules", "flame", "brief", "batch"}
	ofProfiles = []string{"device", "top", "filter", "batch"}
	ofMappings = []string{"top"}
)

// Unanswered says which of the options that were asked for none of the files answers, and which files do; "": all are.
func (o *Options) Unanswered(files []FileKind) string {
	for _, option := range o.Asked {
		if slices.ContainsFunc(files, func(f FileKind) bool { return o.answers(f, option) }) {
			continue
		}
		can := []string{"snapshots of an allocator", "runs that recorded one"}
		if option == "batch" {
			return fmt.Sprintf("--batch does nothing for %s: it is answered by programs that XLA dumped", kindsOf(files))
		}
		if slices.Contains(ofProfiles, option) {
			can = append(can, "memory profiles of other tools")
		}
		if slices.Contains(ofMappings, option) {
			can = append(can, "mappings of smaps", "models", "profiles of their nodes")
		}
		last := len(can) - 1
		return fmt.Sprintf("--%s does nothing for %s: it is answered by %s and %s", option, kindsOf(files),
			strings.Join(can[:last], ", "), can[last])
	}
	return ""
}

func kindsOf(files []FileKind) string {
	var kinds []string
	for _, f := range files {
		if !slices.Contains(kinds, string(f)) {
			kinds = append(kinds, string(f))
		}
	}
	return strings.Join(kinds, " and ")
}

func (o *Options) answers(f FileKind, option string) bool {
	switch f {
	case SnapshotFile, SnapshotRun:
		return option != "batch"
	case ProfileFile: // it is by line in any case
		return slices.Contains(ofProfiles, option) || option == "by" && o.By == "site"
	case MappingsFile, ModelFile, NodesFile:
		return slices.Contains(ofMappings, option)
	}
	return false
}

// MostNames bounds what a list of mappings shows: --top 0 asks for all.
func (o *Options) MostNames() int {
	if o.Top == 0 && slices.Contains(o.Asked, "top") {
		return -1
	}
	return o.Top
}
