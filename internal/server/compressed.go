package server

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// largeAnswer is from how many bytes on an answer is compressed. Through a tunnel that saves most of its time; a
// smaller one, as a tile while the hand moves, is there sooner as it is.
const largeAnswer = 256 << 10

// compressed has large answers of JSON go compressed to clients that take that. It looks at what is written first:
// JSON comes at once.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAPI(r) || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressing{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(c, r)
		c.close()
	})
}

type compressing struct {
	http.ResponseWriter
	status int
	begun  bool         // the header is sent
	zip    *gzip.Writer // nil: the answer goes as it is
}

// Unwrap has http.ResponseController find what it needs.
func (c *compressing) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressing) WriteHeader(status int) { c.status = status }

func (c *compressing) Write(p []byte) (int, error) {
	if !c.begun {
		c.beginBody(len(p))
	}
	if c.zip != nil {
		return c.zip.Write(p)
	}
	return c.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls for a stream of events.
func (c *compressing) FlushError() error {
	if !c.begun {
		c.beginBody(0)
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

func (c *compressing) beginBody(size int) {
	c.begun = true
	header := c.Header()
	if size >= largeAnswer && strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		header.Del("Content-Length")
		c.zip, _ = gzip.NewWriterLevel(c.ResponseWriter, gzip.BestSpeed)
	}
	c.ResponseWriter.WriteHeader(c.status)
}

func (c *compressing) close() {
	if !c.begun {
		c.ResponseWriter.WriteHeader(c.status)
	}
	if c.zip != nil {
		_ = c.zip.Close() // who went away does not read it
	}
}
