package tui

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/sampler"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

var rewrite = flag.Bool("update", false, "write the golden frames anew")

// press types keys, each by its name, and returns what was asked for last.
func press(s *State, keys ...string) (asks []ask) {
	codes := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "tab": {Code: tea.KeyTab},
		"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}}
	for _, k := range keys {
		message, named := codes[k]
		if !named {
			message = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		asks = update(s, message)
	}
	return asks
}

// TestFrames holds each view against its frame at 80 x 24 and 120 x 40.
func TestFrames(t *testing.T) {
	reported := func(s *State) {
		update(s, Reported{ID: "06ffnx559k", Report: demoReport(), Now: s.Now})
		update(s, Quoted{File: "/home/mia/train.py",
			Lines: strings.Split(strings.Repeat("    pass\n", 87)+"        self.history.append(loss)\n    # end", "\n")})
		s.refresh()
	}
	for _, test := range []struct {
		name string
		keys []string
		then func(*State)
	}{
		{"overview", []string{"down", "down"}, nil},
		{"overview-tree", []string{"t", "P"}, nil},
		{"overview-filter", []string{"/", "t", "r", "p", "y"}, nil},
		{"pytorch", []string{"2"}, nil},
		{"tensorflow", []string{"3"}, nil},
		{"timeline", []string{"5"}, nil},
		{"timeline-zoomed", []string{"5", "down", "down", "+", "+", "+"}, nil},
		{"analysis", []string{"6"}, reported},
		{"diagnostics", []string{"7"}, nil},
		{"heap", []string{"8"}, reported},
		{"help", []string{"?"}, nil},
		{"process", []string{"down", "down", "down", "down", "enter"}, func(s *State) {
			update(s, Detailed{PID: s.Process.key.pid, Facts: &sampler.Details{PSS: mem.Some(3900 << 20),
				USS: mem.Some(3700 << 20), Anon: mem.Some(3600 << 20), File: mem.Some(580 << 20),
				Shmem: mem.Some(310 << 20), Swap: mem.Some(0), Peak: mem.Some(4500 << 20), OpenFiles: mem.Some(64),
				Age: mem.Some(148e9), Folder: "/home/mia/bert"}})
		}},
		{"environment", []string{"down", "down", "down", "down", "e"}, func(s *State) {
			update(s, Environ{PID: s.Env.pid, Values: mem.MaskEnv([]string{"HOME=/home/mia",
				"HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", "PYTORCH_ALLOC_CONF=expandable_segments:True"})})
		}},
		{"signal", []string{"down", "down", "down", "down", "x", "enter"}, nil},
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}} {
			name := fmt.Sprintf("%s-%dx%d.txt", test.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				s := demo(size[0], size[1])
				press(s, test.keys...)
				if test.then != nil {
					test.then(s)
				}
				frame := s.Frame()
				fits(t, frame, size[0], size[1])
				golden(t, name, ansi.Strip(frame)+"\n")
			})
		}
	}
}

// fits checks that a frame has the size of the terminal.
func fits(t *testing.T, frame string, width, height int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) != height {
		t.Errorf("%d lines, want %d", len(lines), height)
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > width {
			t.Errorf("line %d is %d wide, want at most %d: %q", i+1, n, width, l)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test ./internal/tui -update writes it", err)
	}
	if string(want) != got {
		t.Errorf("%s differs; go test ./internal/tui -update writes it anew. Got:\n%s", name, got)
	}
}

// TestEverySize draws every view on terminals of every size, small ones too, with and without a run: no line is too
// wide, nothing panics.
func TestEverySize(t *testing.T) {
	for width := 1; width <= 200; width += 13 {
		for height := 1; height <= 60; height += 7 {
			for _, s := range []*State{demo(width, height), NewState()} {
				s.Width, s.Height = width, height
				update(s, Reported{ID: "06ffnx559k", Report: demoReport(), Now: demoStart.Add(time.Hour)})
				for tab := range s.tabCount() {
					press(s, string(rune('1'+tab)))
					update(s, Reported{ID: "06ffnx559k", Report: demoReport(), Now: demoStart.Add(time.Hour)})
					s.refresh()
					if frame := s.Frame(); width >= leastWidth && height >= leastHeight {
						fits(t, frame, width, height)
					}
				}
			}
		}
	}
}

// TestFewSigns: a terminal that can show ASCII alone, or what fonts of the kernel's console have, gets every view in
// that, and no column moves.
func TestFewSigns(t *testing.T) {
	const codePage437 = "█▄▌▐▀░▒▓■►◄▲▼↑↓→←│─├└┌┐┘┤•○·°±²µ"
	for name, of := range map[string]struct {
		signs  *strings.Replacer
		beside string // ASCII
	}{"ASCII": {asciiOnly, ""}, "console": {consoleOnly, codePage437}} {
		t.Run(name, func(t *testing.T) { fewSigns(t, of.signs, of.beside) })
	}
}

func fewSigns(t *testing.T, signs *strings.Replacer, beside string) {
	for tab := range tabs() {
		s := demo(120, 40)
		s.Launching = true
		press(s, string(rune('1'+tab)))
		update(s, Reported{ID: "06ffnx559k", Report: demoReport(), Now: s.Now})
		s.refresh()
		frame := ansi.Strip(s.Frame())
		got := signs.Replace(frame)
		if at := strings.IndexFunc(got, func(r rune) bool { return r > 126 && !strings.ContainsRune(beside, r) }); at >= 0 {
			t.Errorf("view %d has %q", tab+1, []rune(got[at:])[0])
		}
		if ansi.StringWidth(got) != ansi.StringWidth(frame) {
			t.Errorf("view %d is %d wide, want %d", tab+1, ansi.StringWidth(got), ansi.StringWidth(frame))
		}
	}
}

// TestOutputIsSafe: of what a program writes colours stay, carriage returns count, and nothing moves the cursor.
func TestOutputIsSafe(t *testing.T) {
	var o terminalText
	for _, piece := range []string{"10 %\r50 %\r", "100 %\n\x1b[31mred\x1b", "[0m \x1b[2J\x1b[Hgone\x07\n", "na\xc3",
		"\xafve\n"} {
		o.write([]byte(piece))
	}
	got := strings.Join(o.tail(40, 10), "|")
	if want := "100 %\x1b[m|\x1b[31mred\x1b[0m gone\x1b[m|naïve\x1b[m"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
