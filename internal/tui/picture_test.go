package tui

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// TestPicture holds the picture of docs/top.md to the views: go test ./internal/tui -update draws it anew.
func TestPicture(t *testing.T) {
	s := demo(120, 26)
	press(s, "down", "t")
	got := svg(s.Frame(), 120)
	file := filepath.Join("..", "..", "docs", "images", "top.svg")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("docs/images/top.svg is not what the views draw (%v); go test ./internal/tui -update draws it anew", err)
	}
}

// colours are those of the terminal in the picture, by SGR code.
var colours = map[string]string{"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff",
	"36": "#56d4dd"}

const cellWidth, lineHeight = 8.4, 18

// svg draws a frame: stretches of one look, each at its column.
func svg(frame string, columns int) string {
	lines := strings.Split(frame, "\n")
	width, height := int(float64(columns)*cellWidth)+24, len(lines)*lineHeight+24
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"ui-monospace, "+
		"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n", width, height)
	fmt.Fprintf(&b, "<title>hightide top: bars of memory, processors and GPUs, the runs, and the processes as a "+
		"tree</title>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#0d1117\"/>\n", width, height)
	for y, line := range lines {
		column, look := 0, ""
		for line != "" {
			text, rest := line, ""
			if at := strings.IndexByte(line, 0x1b); at == 0 {
				end := strings.IndexByte(line, 'm')
				look, line = line[2:end], line[end+1:]
				continue
			} else if at > 0 {
				text, rest = line[:at], line[at:]
			}
			stretch(&b, column, y, text, look)
			column, line = column+ansi.StringWidth(text), rest
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func stretch(b *strings.Builder, column, line int, text, look string) {
	x, y := 12+float64(column)*cellWidth, 12+line*lineHeight
	width := float64(ansi.StringWidth(text)) * cellWidth
	fill, more := "#c9d1d9", ""
	for _, code := range strings.Split(look, ";") {
		switch code {
		case "1":
			more += " font-weight=\"bold\""
		case "2":
			more += " opacity=\"0.6\""
		case "4":
			more += " text-decoration=\"underline\""
		case "7":
			fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#c9d1d9\"/>", x, y, width, lineHeight)
			fill = "#0d1117"
		}
		if c := colours[code]; c != "" {
			fill = c
		}
	}
	if strings.TrimSpace(text) != "" {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" xml:space=\"preserve\" fill=\"%s\"%s>%s</text>\n", x,
			y+14, width, fill, more, html.EscapeString(text))
	}
}
