package server

import (
	"net/http"
	"strings"
	"testing"

	"hightide/internal/format"
)

// TestAccept: the form is the one that a client likes best, and one that takes none of ours is told which there are.
func TestAccept(t *testing.T) {
	s := newSite(t, Options{})
	s.finish(s.begin("run", 3))
	const csv, parquet = "text/csv", "application/vnd.apache.parquet"
	for accept, want := range map[string]string{
		"":                                 jsonKind,
		"*/*":                              jsonKind,
		csv:                                csv,
		"TEXT/CSV; charset=utf-8":          csv,
		"text/*":                           csv,
		parquet:                            parquet,
		"application/json, text/csv;q=0.5": jsonKind,
		"application/json;q=0.1, text/csv": csv,
		"*/*, application/json;q=0":        csv,
		"*/*;q=0.1, " + parquet + ";q=0.9": parquet,
		"text/html,application/xml;q=0.9,*/*;q=0.8": jsonKind,
		format.ArrowKind:                    format.ArrowKind,
		format.ArrowKind + "," + parquet:    parquet,
		"application/vnd.apache.arrow.file": "",
		"text/csv;q=0":                      "",
		"text/csv;q=none":                   "",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/runs/last/series", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := insider.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		status := http.StatusOK
		if want == "" {
			status, want = http.StatusNotAcceptable, "application/problem+json"
		}
		if got, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";"); response.StatusCode != status || got != want {
			t.Errorf("Accept %q: %s as %s; want %s", accept, response.Status, got, want)
		}
	}
}
