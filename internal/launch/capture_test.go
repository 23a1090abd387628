package launch

import "testing"

// TestLastLine: a line that begins as it is to wins over what follows it; else it is the last one.
func TestLastLine(t *testing.T) {
	for _, c := range []struct{ text, begins, want string }{
		{"one\ntwo\n\n", "", "two"},
		{"hightide: no such batch\nleaked 1 instance\n", "hightide: ", "hightide: no such batch"},
		{"hightide: no such batch\nleaked 1 instance\n", "", "leaked 1 instance"},
		{"one\nbye\n", "hightide: ", "bye"},
		{"10 %\r20 %\n", "", "20 %"},
		{"", "hightide: ", ""},
	} {
		output, err := NewCapture()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := output.File.WriteString(c.text); err != nil {
			t.Fatal(err)
		}
		output.Close()
		if got := output.LastLine(c.begins); got != c.want {
			t.Errorf("%q, %q: %q, not %q", c.text, c.begins, got, c.want)
		}
	}
}
