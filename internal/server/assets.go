package server

import (
	"io/fs"
	"net/http"
	"strings"

	"hightide/web"
)

// assets serves the web UI: its files by name, and its page for every other path, as the page reads its address itself.
func assets() http.Handler {
	files, err := web.App()
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		})
	}
	serve := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isAPI(r):
			refuse(w, r, http.StatusNotFound, "the API has no "+r.Method+" "+clip(r.URL.Path,
				auditPath)+" (/openapi.json lists what it has)")
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, r, http.StatusMethodNotAllowed, "pages are only read")
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		if info, err := fs.Stat(files, name); name != "" && err == nil && !info.IsDir() {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // its name has a hash of its content
			serve.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, files, "app.html")
	})
}
