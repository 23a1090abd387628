package store

import (
	"path"
	"strconv"
	"strings"
)

// placeText bounds the texts of a place, in bytes: they stand in an index of PostgreSQL.
const placeText = 500

// Spot is where in a program a filter looks. The zero value is anywhere.
type Spot struct {
	File string // the end of the path, by whole folders: train.py, or models/train.py
	Line int    // 0: any
}

// ParseSpot reads FILE or FILE:LINE.
func ParseSpot(text string) (s Spot, ok bool) {
	ok = len(text) <= placeText
	if at := strings.LastIndex(text, ":"); at >= 0 {
		line, err := strconv.Atoi(text[at+1:])
		s.Line, text, ok = line, text[:at], ok && err == nil && line > 0
	}
	s.File = strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(text, `\`, "/")), "/")
	return s, ok && s.File != ""
}

// String is what ParseSpot reads.
func (s Spot) String() string {
	if s.Line > 0 {
		return s.File + ":" + strconv.Itoa(s.Line)
	}
	return s.File
}

// base is the name of a file without its folders, on any system.
func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(file, `\`, "/"))
}
