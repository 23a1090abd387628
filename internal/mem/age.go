package mem

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseAge reads 90m, 12h, 30d or 8w: a time that has passed.
func ParseAge(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			if value, err := strconv.ParseFloat(number, 64); err == nil && value > 0 && value < 1e4 {
				return time.Duration(value * float64(unit)), nil
			}
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a time", text)
}
