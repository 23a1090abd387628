package team

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"hightide/internal/store"
)

const example = `
address = "0.0.0.0:7333"
names = ["runs.example.org"]
store = "postgres://db/hightide"
objects = "file:///runs"
admins = ["eve"]
proxies = ["10.0.0.1", "fd00::/8"]
tls = { cert = "cert.pem", key = "key.pem" }
rates = { requests = 20, bytes = "20MiB" }

[projects.ranker]
viewers = ["bob", "anna"]
members = ["anna", "ci"]
keep = { age = "90d", size = "50GiB" }
[projects."big-1.0"]
admins = ["anna"]
`

// TestRoles: the highest role of an account counts, and who is named nowhere has none.
func TestRoles(t *testing.T) {
	c, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	type roles = map[string]store.Role
	for account, want := range map[string]store.Scope{
		"anna": {Roles: roles{"ranker": store.Member, "big-1.0": store.Admin}}, "bob": {Roles: roles{"ranker": store.Viewer}},
		"eve": {All: true, Roles: roles{}}, "mallory": {Roles: roles{}}, "": {Roles: roles{}}, "Anna": {Roles: roles{}},
	} {
		if got := c.Scope(account); !reflect.DeepEqual(got, want) {
			t.Errorf("%q has %+v; want %+v", account, got, want)
		}
	}
	if c.Rates != (Rates{20, 20 << 20}) || c.TLS.Key != "key.pem" {
		t.Errorf("read as %+v", c)
	}
	if got := c.Projects["ranker"].Keep; got != (Keep{Age(90 * 24 * time.Hour), 50 << 30}) {
		t.Errorf("kept for %+v", got)
	}
	if all, err := c.Trusted(); err != nil || len(all) != 2 || all[0].String() != "10.0.0.1/32" {
		t.Errorf("proxies %v, %v", all, err)
	}
}

// TestWrongFiles: each mistake is said, with its line where the file has one.
func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		"\n[projects.x]\nmember = ['a']":                      "line 3: there is no setting projects.x.member",
		"adress = ':1'":                                       "line 1: there is no setting adress",
		"rates = { bytes = 'many' }":                          "line 1",
		"[projects.x]\nkeep = { age = 'long' }":               "line 2",
		"rates = { requests = -1 }":                           "a rate is more than 0",
		"proxies = ['everybody']":                             `"everybody" is neither`,
		"[projects.'a b']":                                    `the project "a b"`,
		"[projects.'']":                                       `the project ""`,
		"[projects.-a]":                                       `the project "-a"`,
		"tls = { cert = 'x' }":                                "cert and key go together",
		"[[projects.x.hooks]]\non = ['leak']":                 "a url or a url-file",
		"[[projects.x.hooks]]\nurl = 'ftp://x'":               "none of http or https",
		"[[projects.x.hooks]]\nurl = 'http://x'\nas = 'mail'": "as json or slack",
		"address = 1":                                         "line 1",
		"[projects.x]\nmembers = 'a, b'":                      "line 2",
		"[projects.'" + strings.Repeat("x", 101):              "line 1",
	} {
		if c, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; want %q", text, c, err, want)
		}
	}
}
