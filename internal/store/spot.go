package store

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// placeText bounds the texts of a place, in bytes: they stand in an index of PostgreSQL.
const placeText = 500

// Spot is where in a program a filter looks. The zero value is anywhere.
type Spot struct {
	File     string // the end of the path, by whole folders: train.py, or models/train.py
	Line     int    // 0: any
	Function string // the end of its name, by whole parts: forward, or Net.forward; "": any
}

// function is what may be the name of one: no number, and no path.
var function = regexp.MustCompile(`^[^\d\s/\\:-][^\s/\\:]*$`)

// ParseSpot reads FILE, FILE:LINE or FILE:FUNCTION.
func ParseSpot(text string) (s Spot, ok bool) {
	ok = len(text) <= placeText
	if at := strings.LastIndex(text, ":"); at >= 0 {
		behind := text[at+1:]
		text = text[:at]
		if function.MatchString(behind) {
			s.Function = behind
		} else {
			line, err := strconv.Atoi(behind)
			s.Line, ok = line, ok && err == nil && line > 0
		}
	}
	s.File = strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(text, `\`, "/")), "/")
	return s, ok && s.File != ""
}

// String is what ParseSpot reads.
func (s Spot) String() string {
	switch {
	case s.Line > 0:
		return s.File + ":" + strconv.Itoa(s.Line)
	case s.Function != "":
		return s.File + ":" + s.Function
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
