package metrics

import (
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"hightide/internal/fail"
)

// Push says where metrics are sent. The zero value sends none.
type Push struct {
	RemoteWrite string        // URL of a receiver of Prometheus remote write
	OTLP        string        // URL of a receiver of OpenTelemetry metrics over HTTP
	Every       time.Duration // 0: 15 s
	Token       string        // sent as "Authorization: Bearer"; "": what the URL has
	Headers     []string      // sent as well, as "X-Scope-OrgID: team"

	Dir   string       // of the queues; it is there, and this user's alone
	Limit int64        // bytes of each queue; 0: 64 MiB
	Say   func(string) // takes lines for people: that a receiver does not answer, and that it does again

	firstWait, within time.Duration // between tries, and for an answer; 0: 1 s and 30 s
	last              time.Duration // at the end, for what is in the queue; 0: tellLast
}

const (
	defaultEvery = 15 * time.Second
	defaultLimit = 64 << 20
	tellLast     = 2 * time.Second
)

// headerName is what HTTP lets a header be called.
var headerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// Check refuses addresses that cannot be.
func (p *Push) Check() error {
	for flag, address := range map[string]string{"--remote-write": p.RemoteWrite, "--otlp": p.OTLP} {
		if address == "" {
			continue
		}
		if to, err := url.Parse(address); err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
			return fail.Usage("as in "+flag+" https://metrics.example.org/receive", "%s takes an http or https URL", flag)
		}
	}
	for _, header := range p.Headers {
		if name, value, ok := strings.Cut(header, ":"); !ok || !headerName.MatchString(name) || strings.ContainsFunc(value, unicode.IsControl) {
			return fail.Usage("as in --push-header 'X-Scope-OrgID: team'", "%q is not a header", header)
		}
	}
	if p.Every < 0 || p.Every > 0 && p.Every < LeastPause {
		return fail.Usage("as in --push-every 15s", "pushing every %v is too often", p.Every)
	}
	return nil
}

// LeastPause is the shortest time between two pushes.
const LeastPause = 100 * time.Millisecond
