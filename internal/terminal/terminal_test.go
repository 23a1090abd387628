package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func indexOf(text string) *Index {
	x := &Index{}
	_, _ = x.Write([]byte(text))
	return x
}

func TestRows(t *testing.T) {
	for _, test := range []struct {
		name, text string
		rows, row  int64
	}{
		{"nothing", "", 0, 0},
		{"a line that is not ended", "a", 1, 0},
		{"lines", "a\nb\r\nc\n", 4, 3},
		{"a bar of tqdm", "\r 1%\r 2%\r100%\n", 2, 1},
		{"two bars", strings.Repeat("\router\n\rinner\x1b[A", 50), 2, 0},
		{"a display of rich", "step\nloss" + strings.Repeat("\r\x1b[2K\x1b[1A\x1b[2Kstep\nloss", 50), 2, 1},
		{"a screen that is cleared", "old\n\x1b[2J\x1b[Hnew\nmore\x1b[Hagain", 4, 2},
		{"up no farther than the first", "\x1b[5Aa\n", 2, 1},
		{"down no farther than the last", "a\nb\x1b[9999B", 2, 1},
		{"a title that is never ended", "a\x1b]0;title\nb", 2, 1},
		{"back to a place", "a\x1b[s\nb\nc\x1b[u", 3, 0},
		{"modes and charsets", "\x1b[?1049h\x1b(B\x1b=\x1bPq#0\x1b\\a\n", 2, 1},
	} {
		if x := indexOf(test.text); x.Rows() != test.rows || x.row != test.row {
			t.Errorf("%s: %d rows, the cursor in %d; want %d, %d", test.name, x.Rows(), x.row, test.rows, test.row)
		}
	}
}

// TestTorn: wherever the output is torn between two writes, the index is the same.
func TestTorn(t *testing.T) {
	text := strings.Repeat("\r\x1b[1;32mépoch\x1b[0m 漢\n\x1b]8;;https://a.org/\x1b\\link\x1b]8;;\a\x1b[A\x1b[K\n\n", 12000)
	whole := indexOf(text)
	if len(whole.Blocks) < 3 {
		t.Fatalf("%d blocks", len(whole.Blocks))
	}
	for _, size := range []int{1, 7, 1000, BlockBytes - 1, BlockBytes} {
		x := &Index{}
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			_, _ = x.Write(rest[:n])
			rest = rest[n:]
		}
		if x.Rows() != whole.Rows() || x.Size != whole.Size || fmt.Sprint(x.Blocks) != fmt.Sprint(whole.Blocks) {
			t.Errorf("in pieces of %d bytes it is another", size)
		}
	}
}

func TestBlocks(t *testing.T) {
	lines := strings.Repeat(strings.Repeat("x", 79)+"\n", 20000)
	x := indexOf("\x1b[31m" + lines)
	for i, b := range x.Blocks {
		if i == 0 {
			continue
		}
		if b.Row != (b.At-5)/80 || (b.At-5)%80 != 0 || b.Style != "\x1b[31m" || b.Low != b.Row {
			t.Errorf("block %d: %+v", i, b)
		}
	}
	if got := indexOf("\x1b[31;1ma\x1b[mb\x1b[4mc"); string(got.style) != "\x1b[4m" {
		t.Errorf("style %q", got.style)
	}
	letters := strings.Repeat("é", BlockBytes)
	for _, b := range indexOf(letters).Blocks {
		if !utf8.RuneStart(letters[b.At]) {
			t.Errorf("a block begins within a letter, at %d", b.At)
		}
	}
}

// TestSkip: what was left out has no rows, and what follows begins a block.
func TestSkip(t *testing.T) {
	x := indexOf("a\n")
	x.Skip(1 << 30)
	_, _ = x.Write([]byte("b\n"))
	if x.Size != 1<<30+4 || x.Rows() != 3 || len(x.Blocks) != 2 || x.Blocks[1].At != 1<<30+2 || x.Blocks[1].Row != 1 {
		t.Errorf("%+v", x)
	}
}

// TestHostileOutput: what nobody would write costs no more than it weighs.
func TestHostileOutput(t *testing.T) {
	for name, text := range map[string]string{
		"no line at all":   strings.Repeat("x", 4<<20),
		"only sequences":   strings.Repeat("\x1b[31m", 1<<20),
		"only continued":   strings.Repeat("\x80", 1<<20),
		"colours":          strings.Repeat("\x1b[38;2;1;2;3m", 1<<18),
		"far up, far down": strings.Repeat("\n\x1b[999999999999999999999A\x1b[99999999B", 1<<16),
	} {
		x := indexOf(text)
		if len(x.Blocks) > len(text)/BlockBytes+1 || x.Size != int64(len(text)) || x.Rows() > int64(len(text)) {
			t.Errorf("%s: %d blocks, %d bytes, %d rows", name, len(x.Blocks), x.Size, x.Rows())
		}
		for _, b := range x.Blocks {
			if len(b.Style) > mostStyle || b.Low < 0 || b.High < b.Low {
				t.Errorf("%s: %+v", name, b)
			}
		}
	}
}

// FuzzIndex: any bytes, torn anywhere, give blocks that begin in order and rows that are there.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("\x1b[2J\x1b[H\x1b[999Aa\n"), 3)
	f.Add([]byte("\x1b]8;;\x1b[1;2m\x18\x1bM\x1bD"), 1)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		whole, torn := &Index{}, &Index{}
		_, _ = whole.Write(text)
		at = min(max(at, 0), len(text))
		_, _ = torn.Write(text[:at])
		_, _ = torn.Write(text[at:])
		if whole.Rows() != torn.Rows() || !bytes.Equal(whole.style, torn.style) || whole.row < 0 || whole.row > whole.high {
			t.Fatalf("%+v and %+v", whole, torn)
		}
	})
}

func BenchmarkIndex(b *testing.B) {
	text := []byte(strings.Repeat("2026-01-01 12:00:00 \x1b[32mINFO\x1b[0m step 100 loss 0.123456\n", 20000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		(&Index{}).Write(text)
	}
}
