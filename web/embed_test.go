package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	for name, write := range map[string]func(io.Writer, []byte) error{"report": Report, "matrix": Matrix} {
		t.Run(name, func(t *testing.T) { standsAlone(t, name, write) })
	}
}

// standsAlone holds a page to what every page promises: it has the data it was given, and needs nothing else.
func standsAlone(t *testing.T, name string, write func(io.Writer, []byte) error) {
	var page bytes.Buffer
	report := `{"run":{"name":"</script><script>alert(1)</script><!--","cwd":"a` + "\u2028\u2029" + `&b"}}`
	err := write(&page, []byte(report))
	if errors.Is(err, ErrNotBuilt) {
		t.Skip("web/dist is not built: make web")
	}
	if err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if strings.Contains(text, "<script>alert(1)") {
		t.Error("a report can end the script element it lies in")
	}
	if strings.ContainsAny(text, "\u2028\u2029") {
		t.Error("the page has line separators that old browsers take for ends of lines")
	}
	_, rest, _ := strings.Cut(text, `id="hightide-`+name+`">`)
	inside, _, _ := strings.Cut(rest, "</script>")
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(inside)))
	if err != nil {
		t.Fatalf("the report in the page: %v", err)
	}
	var got, want any
	if err := errors.Join(json.NewDecoder(packed).Decode(&got), json.Unmarshal([]byte(report), &want)); err != nil {
		t.Fatalf("the report in the page: %v", err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the page holds %v, want %v", got, want)
	}
	for _, outside := range []string{`src="http`, `href="http`, "url(http", `src="/`, `href="/`} {
		if strings.Contains(text, outside) {
			t.Errorf("the page needs something outside it: %s", outside)
		}
	}
}
