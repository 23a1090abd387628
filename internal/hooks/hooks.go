// Package hooks tells addresses of a project what was found in its runs: as JSON, signed, or as chats of Slack's kind
// take it.
//
//	a run that has ended, or sounds an alert ──▶ bodies, one for each hook that wants it ──▶ kept in the store ──▶ Send, again and again
//
// A message is kept before it is sent, so it arrives although the server was killed, and may then arrive twice: its
// number says that it is the same.
package hooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Forms of a message.
const (
	JSON  = "json"
	Slack = "slack"
)

// Hook is an address that is told of a project's runs.
type Hook struct {
	Project string
	URL     string
	As      string   // a form; "": JSON
	Secret  string   // signs messages; "": they are not signed
	On      []string // kinds of findings; none: all that are critical or a warning
}

// Name is what the store calls a hook: the address itself may be a secret.
func (h *Hook) Name() string {
	sum := sha256.Sum256([]byte(h.Project + "\n" + h.As + "\n" + h.URL))
	return hex.EncodeToString(sum[:])
}

// String is what people are told of a hook.
func (h *Hook) String() string {
	host := "an address"
	if u, err := url.Parse(h.URL); err == nil {
		host = u.Hostname()
	}
	return fmt.Sprintf("the hook of project %q at %s", h.Project, host)
}

// Message is the JSON of a hook.
type Message struct {
	Version  int       `json:"version"`
	Event    string    `json:"event"` // findings: of a run that has ended; alert: of one that goes on
	Project  string    `json:"project"`
	Run      Run       `json:"run"`
	Findings []Finding `json:"findings"`
}

// Run is that of a message.
type Run struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Host   string `json:"host,omitempty"`
	Commit string `json:"git_commit,omitempty"`
	Ended  string `json:"ended"`
	Figure string `json:"figure,omitempty"` // by which it is known, for people
	URL    string `json:"url,omitempty"`    // its page
}

// Finding is one of a message.
type Finding struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// Body is what a hook is told of a run that has ended; "": nothing that it wants was found. Alerts that were told of
// before, by their titles, are left out.
func (h *Hook) Body(run store.Run, r *report.Report, told map[string]bool, base string) string {
	left := slices.DeleteFunc(slices.Clone(r.Findings), func(f report.Finding) bool {
		return f.Kind == report.KindAlert && told[f.Title]
	})
	return h.body("findings", run, left, base)
}

// Alert is what a hook is told of an alert of a run that goes on; "": it does not want that.
func (h *Hook) Alert(run store.Run, title, base string) string {
	return h.body("alert", run, []report.Finding{{Kind: report.KindAlert, Severity: report.Warning, Title: title}}, base)
}

func (h *Hook) body(event string, run store.Run, findings []report.Finding, base string) string {
	m := Message{Version: 1, Event: event, Project: h.Project, Run: Run{ID: run.ID, Name: run.Name, Host: run.Host,
		Commit: run.GitCommit, Ended: run.Ended.Text}}
	if run.Figure.What != "" {
		m.Run.Figure = fmt.Sprintf("%s %s", run.Figure.What, mem.Bytes(run.Figure.Bytes))
	}
	if base != "" {
		m.Run.URL = strings.TrimRight(base, "/") + "/runs/" + url.PathEscape(run.ID)
	}
	for i := range findings {
		if f := &findings[i]; h.wants(f) {
			m.Findings = append(m.Findings, Finding{f.Kind, f.Severity, f.Title, f.File, f.Line})
		}
	}
	if len(m.Findings) == 0 {
		return ""
	}
	var body any = m
	if h.As == Slack {
		body = map[string]string{"text": m.text()}
	}
	text, err := json.Marshal(body)
	if err != nil { // of plain texts and numbers
		panic(err)
	}
	return string(text)
}

func (h *Hook) wants(f *report.Finding) bool {
	if len(h.On) == 0 {
		return f.Severity == report.Critical || f.Severity == report.Warning
	}
	return slices.Contains(h.On, f.Kind)
}

// plain is a text in which nothing means something to Slack: no link, no mention of everybody.
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (m *Message) text() string {
	name := m.Run.Name
	if name == "" {
		name = m.Run.ID
	}
	name = plain.Replace(report.Clean(name))
	if m.Run.URL != "" {
		name = "<" + m.Run.URL + "|" + strings.ReplaceAll(name, "|", "¦") + ">"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s of project %s", name, m.Project)
	if m.Event == "alert" {
		b.WriteString(" goes on")
	}
	if m.Run.Figure != "" {
		fmt.Fprintf(&b, ", %s", plain.Replace(m.Run.Figure))
	}
	for _, f := range m.Findings {
		fmt.Fprintf(&b, "\n• %s: %s", f.Severity, plain.Replace(report.Clean(f.Title)))
		if f.File != "" {
			fmt.Fprintf(&b, " (%s:%d)", plain.Replace(report.Clean(f.File)), f.Line)
		}
	}
	return b.String()
}

// sendWithin is how long a receiver may take.
const sendWithin = 10 * time.Second

// client follows no way elsewhere: who answers with one is not whom the file names.
var client = &http.Client{Timeout: sendWithin, CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

// Send sends a message once. An error says what was answered, and not the address.
func (h *Hook) Send(ctx context.Context, number int64, body string, now time.Time) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewBufferString(body))
	if err != nil {
		return fmt.Errorf("the address of a hook cannot be read")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "hightide")
	request.Header.Set("X-Hightide-Delivery", strconv.FormatInt(number, 10))
	if h.Secret != "" {
		at := strconv.FormatInt(now.Unix(), 10)
		request.Header.Set("X-Hightide-Timestamp", at)
		request.Header.Set("X-Hightide-Signature", "sha256="+Sign(h.Secret, at, body))
	}
	answer, err := client.Do(request)
	if err != nil {
		if u, is := err.(*url.Error); is { // whose text has the address
			err = u.Err
		}
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %d", answer.StatusCode)
	}
	return nil
}

// Sign is the HMAC-SHA256, in hexadecimal, of the time, a full stop and the body.
func Sign(secret, at, body string) string {
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(at + "." + body))
	return hex.EncodeToString(sum.Sum(nil))
}

// Again is how long to wait after so many tries: two seconds, then twice as long each time, an hour at most.
func Again(tries int64) time.Duration {
	return min(2*time.Second<<min(tries, 11), time.Hour)
}
