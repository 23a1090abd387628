package server

import "net/http"

// routes are those of a server, and remember how they are written.
type routes struct {
	http.ServeMux
	patterns []string
}

func (m *routes) Handle(pattern string, to http.Handler) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.Handle(pattern, to)
}

func (m *routes) HandleFunc(pattern string, to func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(to))
}
