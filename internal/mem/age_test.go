package mem

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "12h": 12 * time.Hour,
		"30d": 30 * 24 * time.Hour, "1.5w": 252 * time.Hour} {
		if got, err := ParseAge(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1e9w", "NaNd", "Infd", "30", "a week", "-5h"} {
		if got, err := ParseAge(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
