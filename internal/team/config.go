// Package team is the file by which one server serves a team: where it listens, where runs are kept, and who may do
// what with the runs of which project.
package team

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"hightide/internal/fleet"
	"hightide/internal/hooks"
	"hightide/internal/mem"
	"hightide/internal/redact"
	"hightide/internal/store"
)

// Config is the file. Its zero value serves nobody anything.
type Config struct {
	Address   string   `toml:"address"`    // HOST:PORT; "": that of hightide ui
	URL       string   `toml:"url"`        // by which messages lead to runs; "": that of oidc
	Names     []string `toml:"names"`      // by which browsers and programs call the server
	Store     string   `toml:"store"`      // as of --store; "": $HIGHTIDE_STORE
	Objects   string   `toml:"objects"`    // as of --objects
	Admins    []string `toml:"admins"`     // accounts that may do everything
	AllowExec bool     `toml:"allow-exec"` // admins may start programs
	Scrapers  []string `toml:"scrapers"`   // accounts that see the figures of the server itself
	Proxies   []string `toml:"proxies"`    // addresses whose word on who asks is believed
	TLS       struct {
		Cert string `toml:"cert"`
		Key  string `toml:"key"`
	} `toml:"tls"`
	OIDC     OIDC               `toml:"oidc"`
	Rates    Rates              `toml:"rates"`
	Fleet    Fleet              `toml:"fleet"`
	Projects map[string]Project `toml:"projects"`
}

// OIDC is the provider at which people sign in; without an issuer there is none.
type OIDC struct {
	Issuer     string   `toml:"issuer"`
	ClientID   string   `toml:"client-id"`
	SecretFile string   `toml:"client-secret-file"` // beside the file; "": $HIGHTIDE_OIDC_SECRET
	URL        string   `toml:"url"`                // by which browsers call this server
	Account    string   `toml:"account"`            // the claim that is the account; "": email
	Groups     string   `toml:"groups"`             // the claim that lists groups; "": groups
	Scopes     []string `toml:"scopes"`             // beside openid; none: profile, email, groups
}

// Rates are what one caller may take; 0: as much as there is.
type Rates struct {
	Requests float64 `toml:"requests"` // a second
	Bytes    Size    `toml:"bytes"`    // sent, a second
}

// Fleet is which machines tell what they hold, who sees it, and what it costs.
type Fleet struct {
	Machines []string           `toml:"machines"` // accounts, whose keys hightide watch has there
	Viewers  []string           `toml:"viewers"`
	Idle     Age                `toml:"idle"`         // from which on who holds memory and does nothing is named
	Prices   map[string]float64 `toml:"prices"`       // of an hour, by a part of the name of a GPU
	Memory   float64            `toml:"memory-price"` // of an hour of a GiB of hosts
	Currency string             `toml:"currency"`
}

// Settings are those of an overview.
func (f *Fleet) Settings() fleet.Settings {
	return fleet.Settings{Idle: time.Duration(f.Idle), Prices: f.Prices, Memory: f.Memory, In: f.Currency,
		Expected: f.Machines}
}

// check refuses prices that are none.
func (f *Fleet) check() error {
	for _, name := range slices.Sorted(maps.Keys(f.Prices)) {
		if f.Prices[name] < 0 || name == "" {
			return fmt.Errorf("fleet.prices: %q costs %v an hour, and a price is 0 or more", name, f.Prices[name])
		}
	}
	if f.Memory < 0 {
		return errors.New("fleet: memory-price is 0 or more")
	}
	return nil
}

// Project is who has which role in it, by account.
type Project struct {
	Viewers []string `toml:"viewers"`
	Members []string `toml:"members"`
	Admins  []string `toml:"admins"`

	Redact redact.Rules `toml:"redact"` // what is taken out of a run before it is sent
	Keep   Keep         `toml:"keep"`
	Hooks  []Hook       `toml:"hooks"` // who is told of what was found in its runs
}

// Hook is an address that is told what was found in runs of a project.
type Hook struct {
	URL        string   `toml:"url"`
	URLFile    string   `toml:"url-file"`    // beside the file, with the address, where that is a secret
	As         string   `toml:"as"`          // json or slack; "": json
	SecretFile string   `toml:"secret-file"` // beside the file: what signs messages
	On         []string `toml:"on"`          // kinds of findings; none: all that are critical or a warning
}

// ValidHook says why an address can be told nothing.
func ValidHook(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("its address is none of http or https") // not told: it may be a secret
	}
	return nil
}

func (h *Hook) check() error {
	switch {
	case (h.URL == "") == (h.URLFile == ""):
		return errors.New("a hook has a url or a url-file")
	case h.As != "" && h.As != hooks.JSON && h.As != hooks.Slack:
		return fmt.Errorf("a hook is told as json or slack, not as %q", h.As)
	case h.URL != "":
		return ValidHook(h.URL)
	}
	return nil
}

// Base is the address of this server, as browsers call it; "": it is not known.
func (c *Config) Base() string { return cmp.Or(c.URL, c.OIDC.URL) }

// Keep is how long runs of a project are kept, but those with the tag keep; 0: for ever.
type Keep struct {
	Age  Age  `toml:"age"`
	Size Size `toml:"size"` // of all of them; the oldest go first
}

// Age is a time that people write as "90d".
type Age time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Age) UnmarshalText(text []byte) error {
	age, err := mem.ParseAge(string(text))
	*a = Age(age)
	return err
}

// Size is a number of bytes that people write as "20MiB".
type Size mem.Bytes

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) error {
	bytes, err := mem.ParseBytes(string(text))
	*s = Size(bytes)
	return err
}

// longestName is as much as the name of a project may have.
const longestName = 100

// Parse reads the file. What it does not know is an error: a role that is misspelt would let nobody in, or everybody.
func Parse(text []byte) (*Config, error) {
	c := &Config{}
	reader := toml.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	if err := reader.Decode(c); err != nil {
		return nil, where(err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Projects)) {
		if !ValidProject(name) {
			return nil, fmt.Errorf("the project %q: a name has 1 to %d letters, digits, '.', '_' or '-', and begins with a "+
				"letter or a digit", name, longestName)
		}
		if _, err := redact.New(c.Projects[name].Redact, ""); err != nil {
			return nil, fmt.Errorf("the project %q: %w", name, err)
		}
		for _, h := range c.Projects[name].Hooks {
			if err := h.check(); err != nil {
				return nil, fmt.Errorf("the project %q: %w", name, err)
			}
		}
	}
	if err := c.Fleet.check(); err != nil {
		return nil, err
	}
	if _, err := c.Trusted(); err != nil {
		return nil, err
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		return nil, errors.New("tls: cert and key go together")
	}
	if c.Rates.Requests < 0 || c.Rates.Bytes < 0 {
		return nil, errors.New("rates: a rate is more than 0")
	}
	return c, nil
}

// where puts the line before an error of the file.
func where(err error) error {
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown) && len(unknown.Errors) > 0:
		row, _ := unknown.Errors[0].Position()
		return fmt.Errorf("line %d: there is no setting %s", row, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &wrong):
		row, _ := wrong.Position()
		return fmt.Errorf("line %d: %w", row, err)
	}
	return err
}

// ValidProject says whether a text can be the name of a project.
func ValidProject(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '.' && r != '_' && r != '-') {
			return false
		}
	}
	return name != "" && len(name) <= longestName
}

// Trusted are the addresses of proxies.
func (c *Config) Trusted() (all []netip.Prefix, err error) {
	for _, text := range c.Proxies {
		prefix, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("proxies: %q is neither an address nor a network, as 10.0.0.0/8", text)
		}
		all = append(all, prefix)
	}
	return all, nil
}

// Administers says whether an account may do everything.
func (c *Config) Administers(account string) bool { return slices.Contains(c.Admins, account) }

// Scope is which runs an account sees, and in which role.
func (c *Config) Scope(account string) store.Scope {
	scope := store.Scope{All: c.Administers(account), Roles: map[string]store.Role{}}
	for name, p := range c.Projects {
		switch {
		case slices.Contains(p.Admins, account):
			scope.Roles[name] = store.Admin
		case slices.Contains(p.Members, account):
			scope.Roles[name] = store.Member
		case slices.Contains(p.Viewers, account):
			scope.Roles[name] = store.Viewer
		}
	}
	return scope
}
