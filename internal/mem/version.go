package mem

import (
	"fmt"
)

// Version is a release of a framework, as 2.15. The zero value is none.
type Version struct{ Major, Minor int }

// ParseVersion reads the first two numbers of a version's text, as of "2.15.0+cu130".
func ParseVersion(text string) (v Version, ok bool) {
	n, _ := fmt.Sscanf(text, "%d.%d", &v.Major, &v.Minor)
	if n != 2 {
		return Version{}, false
	}
	return v, true
}

// Before says whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Versions is a range of releases, both ends included. Without a First it begins at the oldest, without a Last it goes
// on to the newest. The zero value: not known.
type Versions struct{ First, Last Version }

// Known says whether anything is known of the release.
func (r Versions) Known() bool { return r != Versions{} }

// Bound is the end of the range that is known, the older one where both are.
func (r Versions) Bound() Version {
	if r.First == (Version{}) {
		return r.Last
	}
	return r.First
}

func (r Versions) String() string {
	switch {
	case !r.Known():
		return ""
	case r.First == r.Last:
		return r.First.String()
	case r.Last == Version{}:
		return r.First.String() + " or later"
	case r.First == Version{}:
		return r.Last.String() + " or older"
	}
	return r.First.String() + " to " + r.Last.String()
}
