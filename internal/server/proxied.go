package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// proxied believes what proxies say of whom they ask for, and by what: those of these addresses, and nobody else, as
// any client can send the same headers.
func proxied(trusted []netip.Prefix, next http.Handler) http.Handler {
	if len(trusted) == 0 {
		return next
	}
	believed := func(address string) bool {
		at, err := netip.ParseAddr(address)
		return err == nil && slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(at.Unmap()) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil || !believed(host) {
			next.ServeHTTP(w, r)
			return
		}
		of := *r
		if from := client(r.Header.Values("X-Forwarded-For"), believed); from != "" {
			of.RemoteAddr = net.JoinHostPort(from, strconv.Itoa(0)) // of the port nothing is known
		}
		if r.Header.Get("X-Forwarded-Proto") == "https" && of.TLS == nil {
			of.TLS = new(tls.ConnectionState) // the browser's connection has it, which is what cookies ask for
		}
		next.ServeHTTP(w, &of)
	})
}

// client is the last address in the headers that is no proxy's: those before it are what it says itself.
func client(headers []string, believed func(string) bool) string {
	all := strings.Split(strings.Join(headers, ","), ",")
	for _, text := range slices.Backward(all) {
		address, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return ""
		}
		if !believed(address.String()) {
			return address.String()
		}
	}
	return ""
}
