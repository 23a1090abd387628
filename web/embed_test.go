package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
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

// TestApp: what is compressed in the binary is served as it was built, by the names that the page has for it.
func TestApp(t *testing.T) {
	files, err := App()
	if errors.Is(err, ErrNotBuilt) {
		t.Skip("web/dist is not built: make web")
	}
	if err != nil {
		t.Fatal(err)
	}
	page, err := fs.ReadFile(files, "app.html")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`assets/[\w.-]+\.(?:js|css)`).FindAllString(string(page), -1)
	if len(names) < 2 {
		t.Fatalf("the page loads %v", names)
	}
	for _, name := range names {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest("GET", "/"+name, nil)
		request.Header.Set("Range", "bytes=10-19")
		http.FileServerFS(files).ServeHTTP(answer, request)
		text, err := fs.ReadFile(files, name)
		if err != nil || !utf8.Valid(text) || answer.Code != http.StatusPartialContent ||
			answer.Body.String() != string(text[10:20]) {
			t.Errorf("%s: %v, status %d, %d bytes", name, err, answer.Code, answer.Body.Len())
		}
		if info, err := fs.Stat(files, name); err != nil || info.Size() != int64(len(text)) ||
			info.Name() != path.Base(name) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := files.Open("assets/none.js"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
