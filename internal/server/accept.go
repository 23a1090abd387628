package server

import (
	"mime"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

const jsonKind = "application/json"

// notAcceptable says what there is beside JSON.
func notAcceptable(others ...string) error {
	return huma.Error406NotAcceptable("there is " + jsonKind + ", " + strings.Join(others, ", "))
}

// accepted is which of the kinds a client likes best (RFC 9110, 12.5.1), the first of several that it likes as well;
// "" where it takes none of them. One that does not say takes the first.
func accepted(header string, kinds ...string) string {
	if strings.TrimSpace(header) == "" {
		return kinds[0]
	}
	best, most := "", 0.0
	for _, kind := range kinds {
		if q := quality(header, kind); q > most {
			best, most = kind, q
		}
	}
	return best
}

// quality is how much a client likes a kind, 0 to 1, by the most specific range that has it.
func quality(header, kind string) (q float64) {
	whole, _, _ := strings.Cut(kind, "/")
	closest := 0
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		at := map[string]int{"*/*": 1, whole + "/*": 2, kind: 3}[name]
		if err != nil || at <= closest {
			continue
		}
		closest, q = at, 1
		if given, ok := parameters["q"]; ok {
			if q, err = strconv.ParseFloat(given, 64); err != nil || q < 0 || q > 1 {
				q = 0
			}
		}
	}
	return q
}
