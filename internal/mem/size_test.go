package mem

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"24GiB": 24 << 30, "24 GiB": 24 << 30, "24g": 24 << 30, "80GB": 80e9,
		"1.5 MiB": 3 << 19, "512 B": 512, "0B": 0, "2TiB": 2 << 40} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1GiB", "24 parsecs", "1e99GiB", "nan", "512", "0", "1e3"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}
