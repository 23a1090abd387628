package words

import (
	"regexp"
	"sync"
)

// Lazy compiles a regular expression at its first use: each start of the program would pay for those of
// formats that it never meets. It panics then on a pattern that is none.
func Lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
