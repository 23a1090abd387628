package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/fail"
	"hightide/internal/system"
)

// How other programs of this account come to a server that runs:
//
//	hightide ui ──▶ DATA/ui/server-PORT.json, locked while it runs ──▶ run --ui, hightide ui again: a code ──▶ a browser
//	                                                               └─▶ the SDK: the token

// doorFile is what a server leaves for them. Nobody else may read it.
type doorFile struct {
	// by numbers, as http://127.0.0.1:7333: a name may lead to another account's server
	Addresses []string `json:"addresses"`
	Token     string   `json:"token"`
	Where     string   `json:"where"` // the network that the addresses are of
}

// network tells this machine's loopback from that of another which sees the same data directory, and from a
// container's.
func network() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/net")
	if name, err := os.Hostname(); err == nil && (len(boot) == 0 || space == "") {
		return name
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// leaveDoor tells other programs of this account where a server is. It gives the file, which remove takes away;
// remove may always be called.
func (a *app) leaveDoor(listener net.Listener, scheme, token string) (path string, remove func(), err error) {
	remove = func() {}
	dir, err := a.engine().Keep("ui")
	if err != nil {
		return "", remove, err
	}
	at := listener.Addr().(*net.TCPAddr)
	door := doorFile{[]string{scheme + "://" + at.String()}, token, network()}
	if at.IP.IsUnspecified() {
		door.Addresses = []string{scheme + "://127.0.0.1:" + strconv.Itoa(at.Port)}
	}
	file, err := os.CreateTemp(dir, ".server-*") // which nobody else may read
	if err != nil {
		return "", remove, err
	}
	path = filepath.Join(dir, fmt.Sprintf("server-%d.json", at.Port))
	err = errors.Join(json.NewEncoder(file).Encode(door), system.Lock(file, false),
		os.Rename(file.Name(), path))
	if err != nil {
		file.Close()
		_ = os.Remove(file.Name())
		return "", remove, err
	}
	return path, func() { _ = os.Remove(path); file.Close() }, nil
}

// doors are the servers of this account that run for the data directory. What those left that were killed is removed.
func (a *app) doors() (all []doorFile) {
	found, _ := filepath.Glob(filepath.Join(a.engine().Folder(), "ui", "server-*.json"))
	for _, path := range found {
		file, err := os.OpenFile(path, os.O_RDONLY|system.NoFollow, 0)
		if err != nil {
			continue
		}
		var door doorFile
		ours := json.NewDecoder(io.LimitReader(file, 64<<10)).Decode(&door) == nil && door.Where == network()
		gone := system.Lock(file, true) == nil
		file.Close()
		switch {
		case ours && gone:
			_ = os.Remove(path)
		case ours:
			all = append(all, door)
		}
	}
	return all
}

// address asks a server for an address of a page that opens once.
func (d doorFile) address(page string) (string, error) {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Addresses[0]+"/api/v1/session/codes", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+d.Token)
	// the lock says that it is ours, and it is on this machine: whose certificate it has does not matter
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var made struct{ Code string }
	if err := json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&made); err != nil || made.Code == "" {
		return "", fmt.Errorf("the server at %s answers %s", d.Addresses[0], answer.Status)
	}
	return opensOnce(d.Addresses[0]+page, made.Code), nil
}

// opensOnce is an address with a code. Behind the # it is sent nowhere before the page itself sends it.
func opensOnce(address, code string) string { return address + "#code=" + code }

// runningAt gives a new address of the server that listens where another should, if that is one of this account's.
func (a *app) runningAt(address string) (string, bool) {
	if at, err := net.ResolveTCPAddr("tcp", address); err == nil {
		if at.IP.IsUnspecified() || at.IP == nil {
			at.IP = net.IPv4(127, 0, 0, 1)
		}
		address = at.String()
	}
	for _, door := range a.doors() {
		if slices.ContainsFunc(door.Addresses, func(one string) bool {
			_, at, _ := strings.Cut(one, "://")
			return at == address
		}) {
			opened, err := door.address("/")
			return opened, err == nil
		}
	}
	return "", false
}

// tokenIn is the token that a file holds; of a file that is not there, one that is made and put into it.
func tokenIn(flag, path string) (string, error) {
	made, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		token := rand.Text()
		_, err = made.WriteString(token + "\n")
		return token, errors.Join(err, made.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", fail.Environment("name a file in a folder that you may write to", "%s: %w", flag, err)
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0 {
		return "", fail.Input("chmod o= "+path, "%s: %s is not a file that is closed to other accounts", flag, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fail.Unread("", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 || len(token) > 1000 ||
		strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fail.Input("remove the file, and a new one is made",
			"%s: %s does not hold one word of 16 letters or more", flag, path)
	}
	return token, nil
}

// pageAt is an address with another page.
func pageAt(address, page string) string {
	to, err := url.Parse(address)
	if err != nil {
		return address
	}
	to.Path = page
	return to.String()
}
