package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	_ "github.com/lib/pq"
)

// personOf is a name that stands nowhere else.
const personOf = "wilhelmina"

// TestPerson: all that a team has of somebody can be had as a file, and deleted, by the command, by that person and by an
// admin of the server: neither a row, an object nor a file of the server has it afterwards, and what is others' stays as
// it was.
func TestPerson(t *testing.T) {
	t.Run("by the command", func(t *testing.T) {
		testPerson(t, func(s *teamSession, _ string) (string, func()) {
			to := filepath.Join(s.t.TempDir(), "all.tar.gz")
			s.must("person", personOf, "--export", to)
			return to, func() { s.must("person", personOf, "--delete") }
		})
	})
	t.Run("by that person", func(t *testing.T) {
		testPerson(t, func(s *teamSession, own string) (string, func()) {
			return s.exportedBy(own), func() { s.asks(own, "DELETE", "/api/v1/people/"+personOf) }
		})
	})
	t.Run("by an admin", func(t *testing.T) {
		testPerson(t, func(s *teamSession, _ string) (string, func()) {
			root := s.key("root", "--may", "admin")
			return s.exportedBy(root), func() {
				s.asks(root, "DELETE", "/api/v1/people/"+personOf)
				if log := s.must("audit"); !regexp.MustCompile(`key "root" +127\S+ +deletes what is kept of a deleted person +200`).MatchString(log) {
					s.t.Errorf("the log does not say it: %s", log)
				}
			}
		})
	})
}

// asks is what is answered to a request that has to succeed.
func (s *teamSession) asks(key, method, path string) string {
	s.t.Helper()
	status, text := s.as(key, method, path, "")
	if status != 200 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// exportedBy saves what the server gives, and compares its figures with those of the command.
func (s *teamSession) exportedBy(key string) string {
	var page, command map[string]any
	if err := errors.Join(json.Unmarshal([]byte(s.asks(key, "GET", "/api/v1/people/"+personOf)), &page),
		json.Unmarshal([]byte(s.must("person", personOf, "--json")), &command)); err != nil {
		s.t.Fatal(err)
	}
	delete(page, "$schema")
	for _, of := range []map[string]any{page, command} {
		acts, _ := of["acts"].([]any)
		of["acts"] = acts[:5] // a look is told in the log
	}
	if !reflect.DeepEqual(page, command) {
		s.t.Errorf("the server says %v\nthe command %v", page, command)
	}
	to := filepath.Join(s.t.TempDir(), "all.tar.gz")
	if err := os.WriteFile(to, []byte(s.asks(key, "GET", "/api/v1/people/"+personOf+"/export")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return to
}

func testPerson(t *testing.T, by func(s *teamSession, own string) (export string, deletes func())) {
	s := startTeam(t, strings.Replace(teamFile, `["anna"]`, `["anna"]`+"\nadmins = [\""+personOf+`"]`, 1))
	account := s.command("account", personOf)
	account.Stdin = strings.NewReader("a long password\n")
	if out, err := account.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	own, anna := s.key(personOf+"-laptop", "--of", personOf, "--may", "push"), s.key("anna", "--may", "push")
	push := func(key, name string) {
		c := s.command("run", "--quiet", "--push", "--server", s.served.at(""), "--project", "ranker", "--name", name, "--",
			"/bin/true")
		c.Env = append(c.Environ(), "HIGHTIDE_KEY="+key, "HIGHTIDE_STORE=", "HIGHTIDE_OBJECTS=", "HIGHTIDE_DATA="+t.TempDir())
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	push(own, "of-"+personOf)
	push(anna, "annas")
	for _, done := range [][3]string{{own, "POST", "/api/v1/runs/annas/comments"}, {anna, "POST", "/api/v1/runs/annas/comments"},
		{own, "PATCH", "/api/v1/runs/of-" + personOf}, {own, "POST", "/api/v1/runs/annas/shares"}} {
		body := map[string]string{"PATCH": `{"set":{"seen":"yes"}}`, "POST": `{"text":"said"}`}[done[1]]
		if strings.HasSuffix(done[2], "shares") {
			body = `{}`
		}
		if status, text := s.as(done[0], done[1], done[2], body); status != 200 {
			t.Fatalf("%v: %d %s", done, status, text)
		}
	}
	db := s.database()
	if found := s.traces(db, personOf); len(found) < 5 {
		t.Fatalf("before, the name stands in %v alone", found)
	}
	export, deletes := by(s, own)
	s.exported(export)
	deletes()
	s.must("person", personOf, "--delete") // nothing is left to be done, and that is no error
	if found := s.traces(db, personOf); len(found) > 0 {
		t.Errorf("the name is left in %v", found)
	}
	if status, _ := s.as(own, "GET", "/api/v1/status", ""); status != 401 {
		t.Errorf("the key is good: %d", status)
	}
	status, text := s.as(anna, "GET", "/api/v1/runs/annas/comments", "")
	if status != 200 || strings.Count(text, `"by"`) != 1 || !strings.Contains(text, `"by":"anna"`) {
		t.Errorf("comments of others: %d %s", status, text)
	}
	if left := s.must("ls", "--json"); !strings.Contains(left, `"annas"`) || strings.Count(left, `"id"`) != 1 {
		t.Errorf("runs that are left: %s", left)
	}
	s.must("comment", "annas", "with the database's password")
	user := accountName()
	text = s.must("person", user)
	if !strings.Contains(text, "comments: 0\n") || !strings.Contains(text, "perhaps the same person, by comments: "+user+" on ") {
		t.Errorf("of a user of a machine: %s", text)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s.must("person", user+" on "+host, "--delete")
	if text = s.must("person", user); strings.Contains(text, "perhaps") {
		t.Errorf("a user's comments are left: %s", text)
	}
	s.must("rm", "annas")
	if n := s.files(); n != 0 {
		t.Errorf("%d objects belong to nobody", n)
	}
}

// objects is the folder of the team's objects.
func (s *teamSession) objects() string {
	for _, set := range s.env {
		if at, is := strings.CutPrefix(set, "HIGHTIDE_OBJECTS=file://"); is {
			return at
		}
	}
	s.t.Fatal("no folder of objects")
	return ""
}

func (s *teamSession) files() (n int) {
	_ = filepath.WalkDir(s.objects(), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}

func (s *teamSession) database() *sql.DB {
	for _, set := range s.env {
		if at, is := strings.CutPrefix(set, "HIGHTIDE_STORE="); is {
			db, err := sql.Open("postgres", at)
			if err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { db.Close() })
			return db
		}
	}
	s.t.Fatal("no database")
	return nil
}

// traces are the tables, objects and files of the server in which a text stands.
func (s *teamSession) traces(db *sql.DB, text string) (found []string) {
	s.t.Helper()
	rows, err := db.Query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		s.t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			s.t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if len(tables) < 8 {
		s.t.Fatalf("tables %v", tables)
	}
	for _, name := range tables {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM "+name+" AS r WHERE strpos(r::text, $1) > 0", text).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		if n > 0 {
			found = append(found, name)
		}
	}
	for _, folder := range []string{s.objects(), filepath.Join(s.dir, "data")} {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// exported looks through the file of a person.
func (s *teamSession) exported(to string) {
	s.t.Helper()
	file, err := os.Open(to)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		s.t.Fatal(err)
	}
	has := map[string][]byte{}
	for in := tar.NewReader(zipped); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if has[filepath.Base(head.Name)], err = io.ReadAll(in); err != nil {
			s.t.Fatal(err)
		}
	}
	var p struct {
		Keys, Runs, Comments, Shares, Acts []any
		Account                            *any
	}
	if err := json.Unmarshal(has["person.json"], &p); err != nil || p.Account == nil || len(p.Keys) != 1 || len(p.Runs) != 1 ||
		len(p.Comments) != 1 || len(p.Shares) != 1 || len(p.Acts) < 5 || len(has["run.hightide"]) == 0 {
		s.t.Errorf("exported %d files, %v: %s", len(has), err, has["person.json"])
	}
	if text := string(has["person.json"]); strings.Contains(text, "$2a$") || strings.Contains(text, "digest") {
		s.t.Errorf("an export has secrets: %s", text)
	}
}
