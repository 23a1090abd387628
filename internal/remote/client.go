// Package remote sends runs of this machine to a server of a team.
//
//	a run of the data directory ──▶ prepare: what the project does not want is taken out ──▶ parts ──▶ the server
//
// Read send.go for a run, queue.go for what waits while the server is away, servers.go for keys and trust.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hightide/internal/fail"
	"hightide/internal/fleet"
	"hightide/internal/redact"
)

// Client asks a server of a team.
type Client struct {
	server string
	key    string
	http   http.Client

	patience time.Duration // how long something is tried again at least; it is tried so often as tries says, however long
}

const (
	answersWithin = 2 * time.Minute // one request, with a part
	connectWithin = 5 * time.Second
	tries         = 3
	longestPause  = 8 * time.Second // between two tries
)

// NewClient is a client of the server at an address, as https://runs.example.org. A key goes over TLS alone, or stays
// on this machine.
func NewClient(server, key string) (*Client, error) {
	address, err := Address(server)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connectWithin}).DialContext
	return &Client{server: address, key: key, http: http.Client{Timeout: answersWithin, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it leads elsewhere") }}}, nil
}

// Address is that of a server as it is kept: without a path, and refused where a key would go over the network as it
// is.
func Address(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.User != nil {
		return "", fail.Usage("write it as https://runs.example.org:7333", "%q is no address of a server", server)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fail.Usage("write https://", "a key is not sent to %s without TLS, where others could read it", server)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// Project is one of the server, as who asks sees it.
type Project struct {
	Name   string       `json:"name"`
	Role   string       `json:"role"`
	Redact redact.Rules `json:"redact"`
}

// Projects are those that the key's account is in.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	var list struct{ Projects []Project }
	return list.Projects, c.ask(ctx, http.MethodGet, "/projects", nil, &list)
}

// Report tells what a machine holds, by the key of its account.
func (c *Client) Report(ctx context.Context, machine string, r fleet.Report) error {
	return c.ask(ctx, http.MethodPut, "/fleet/machines/"+url.PathEscape(machine), r, nil)
}

// Fleet is what all machines hold.
func (c *Client) Fleet(ctx context.Context) (v *fleet.Overview, err error) {
	v = &fleet.Overview{}
	return v, c.ask(ctx, http.MethodGet, "/fleet", nil, v)
}

// Read is what the server tells at a path of its API.
func (c *Client) Read(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodGet, path, nil, into)
}

// SetStatus says how a check of a commit of a project ended.
func (c *Client) SetStatus(ctx context.Context, project, commit string, status any) error {
	return c.ask(ctx, http.MethodPost, "/projects/"+url.PathEscape(project)+"/commits/"+url.PathEscape(commit)+"/statuses",
		status, nil)
}

// project is one of them.
func (c *Client) project(ctx context.Context, name string) (Project, error) {
	all, err := c.Projects(ctx)
	if err != nil {
		return Project{}, err
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "ask who administers the server to let you in"
	if len(names) > 0 {
		hint = "you are in " + strings.Join(names, ", ")
	}
	return Project{}, fail.Input(hint, "%s has no project %q for you", c.server, name)
}

// awayFor is how long a server may be away in the middle of a run that is sent: as long as one takes to be started again.
const awayFor = time.Minute

// patiently is the client for who has had an answer already: it waits while the server is away.
func (c *Client) patiently() *Client {
	patient := *c
	patient.patience = awayFor
	return &patient
}

// ask sends JSON, and reads JSON. What fails on the way is tried again.
func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	return c.send(ctx, method, path, "application/json", text, into)
}

func (c *Client) send(ctx context.Context, method, path, kind string, body []byte, into any) error {
	for try, began := 1, time.Now(); ; try++ {
		again, err := c.sendOnce(ctx, method, path, kind, body, into)
		if err == nil || again == 0 || try >= tries && time.Since(began) >= c.patience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(again, min(again<<(try-1), longestPause))):
		}
	}
}

// sendOnce says with an error after which time it may go better; 0: it will not.
func (c *Client) sendOnce(ctx context.Context, method, path, kind string, body []byte, into any) (again time.Duration,
	err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", kind)
	answer, err := c.http.Do(request)
	if err != nil {
		var refused *url.Error
		if errors.As(err, &refused) {
			err = refused.Err
		}
		return time.Second, fail.Environment("is it up, and is its address right?", "cannot ask %s: %w", c.server, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil && into != nil {
			return time.Second, fail.Environment("", "%s answers with something else than hightide: %w", c.server, err)
		}
		return 0, nil
	}
	return c.refused(answer)
}

// refused is what the server said, with what to do.
func (c *Client) refused(answer *http.Response) (again time.Duration, err error) {
	var said struct{ Detail, Title string }
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if json.Unmarshal(text, &said) != nil || said.Detail == "" {
		said.Detail = answer.Status
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	again = time.Duration(max(seconds, 1)) * time.Second
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized:
		return 0, fail.Input("hightide login "+c.server+" takes another", "%s does not know the key", c.server)
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway, status >= 503:
		return again, fail.Environment("try again later", "%s: %s", c.server, said.Detail)
	case status >= 500:
		return 0, fail.Environment("its log says more", "%s: %s", c.server, said.Detail)
	}
	return 0, fail.Input("", "%s: %w", c.server, fmt.Errorf("%s", said.Detail))
}
