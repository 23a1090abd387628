package mem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = map[string]float64{"b": 1, "bytes": 1,
	"k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}

// MaxSize is more than any machine has: 64 PiB. A file that says more is wrong.
const MaxSize = Bytes(1) << 56

// ParseBytes reads "24GiB", "23.5 GiB", "80G" (binary), "80GB" (decimal) or "512B", in letters of any case. A number
// alone is refused: nobody who writes 10 means ten bytes.
func ParseBytes(text string) (Bytes, error) {
	s := strings.TrimSpace(strings.ToLower(text))
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz ")
	unit, ok := units[strings.TrimSpace(s[len(number):])]
	value, err := strconv.ParseFloat(number, 64)
	if err == nil && number == s && s != "" {
		return 0, fmt.Errorf("%q has no unit; write it as %sMiB or %sGiB", text, s, s)
	}
	if err != nil || !ok || value < 0 || math.IsNaN(value) || value*unit > 1<<60 {
		return 0, fmt.Errorf("%q is not a size; write it as 24GiB", text)
	}
	return Bytes(value * unit), nil
}
