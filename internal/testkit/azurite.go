package testkit

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Key and name of the account that Azurite has, which are known to all.
const (
	AzuriteAccount = "devstoreaccount1"
	AzuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// StartAzurite starts Azure's storage as Microsoft emulates it, which ends with the test, and gives its address; it skips
// the test where scripts/setup team was not run.
func StartAzurite(t testing.TB) string {
	t.Helper()
	cache := os.Getenv("HIGHTIDE_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "hightide")
	}
	program := filepath.Join(cache, "azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js")
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(program); missing != nil || err != nil {
		t.Skip("Azurite is not installed: scripts/setup team")
	}
	c := exec.Command(node, program, "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence",
		"--disableTelemetry", "--skipApiVersionCheck")
	c.Dir = t.TempDir()
	said, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if _, at, found := strings.Cut(lines.Text(), "listens on "); found {
			go func() { // what it says of each request must not fill the pipe
				for lines.Scan() {
				}
			}()
			return at + "/" + AzuriteAccount
		}
	}
	t.Fatal("Azurite ended before it listened")
	return ""
}
