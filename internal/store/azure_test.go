package store

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hightide/internal/testkit"
)

// azurite is an empty container of Azure's storage, as Microsoft emulates it.
func azurite(t *testing.T, name string) (address string, c *container) {
	t.Helper()
	t.Setenv("AZURE_STORAGE_KEY", testkit.AzuriteKey)
	address = "azblob://" + name + "/team?" + url.Values{"account": {testkit.AzuriteAccount},
		"endpoint": {testkit.StartAzurite(t)}}.Encode()
	o, err := openObjects(address)
	if err != nil {
		t.Fatal(err)
	}
	c = o.(*container)
	at := *c.at
	at.RawQuery = "restype=container"
	answer, err := c.ask(t.Context(), http.MethodPut, &at, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return address, c
}

// NewAzurite is the address of an empty container, for the tests of all stores.
func NewAzurite(t *testing.T) string {
	address, _ := azurite(t, "runs")
	return address
}

// TestContainer: what is put is there, whole; what is not there is told from what fails.
func TestContainer(t *testing.T) {
	_, c := azurite(t, "runs")
	ctx, key := t.Context(), "ab12+ü"
	for _, data := range []string{"", "a piece of a file", strings.Repeat("x", 9<<20)} {
		if err := c.put(ctx, key, []byte(data)); err != nil {
			t.Fatal(err)
		}
		got, err := c.get(ctx, key)
		has, err2 := c.has(ctx, key, int64(len(data)))
		other, err3 := c.has(ctx, key, int64(len(data))+1)
		if err := errors.Join(err, err2, err3); err != nil || string(got) != data || !has || other {
			t.Fatalf("%d bytes: %d came back, there %v, of another size %v, %v", len(data), len(got), has, other, err)
		}
	}
	if err := errors.Join(c.remove(ctx, key), c.remove(ctx, key)); err != nil {
		t.Error(err)
	}
	if _, err := c.get(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed: %v", err)
	}
	if has, err := c.has(ctx, key, 1); has || err != nil {
		t.Errorf("what was removed: %v, %v", has, err)
	}
	c.at = c.at.JoinPath("..", "none")
	if _, err := c.get(ctx, key); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ContainerNotFound") {
		t.Errorf("no such container: %v", err)
	}
	c.key = []byte("another")
	if err := c.put(ctx, key, nil); err == nil || !strings.Contains(err.Error(), "AuthorizationFailure") {
		t.Errorf("with a wrong key: %v", err)
	}
}

// TestContainerAddress: what is wrong is said, and no key or token is in what is said.
func TestContainerAddress(t *testing.T) {
	for _, test := range []struct{ address, key, token, want string }{
		{"azblob:///team?account=a", "a2V5", "", "azblob://CONTAINER"},
		{"azblob://runs", "a2V5", "", "azblob://CONTAINER"},
		{"azblob://runs?account=a", "", "", "neither AZURE_STORAGE_KEY"},
		{"azblob://runs?account=a", "secret%", "", "not written in Base64"},
		{"azblob://runs?account=a", "", "sig=%zz", "is no token"},
		{"azblob://runs?account=a&endpoint=ftp://x", "a2V5", "", "endpoint=https://HOST"},
	} {
		t.Setenv("AZURE_STORAGE_ACCOUNT", "")
		t.Setenv("AZURE_STORAGE_KEY", test.key)
		t.Setenv("AZURE_STORAGE_SAS_TOKEN", test.token)
		if _, err := openObjects(test.address); err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "%zz") {
			t.Errorf("%s: %v", test.address, err)
		}
	}
	t.Setenv("AZURE_STORAGE_KEY", "")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2021-12-02&sig=secret")
	o, err := openObjects("azblob://runs?account=a&endpoint=http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.get(ctx, "abc"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a server that is away: %v", err)
	}
	if o, err := openObjects("azblob://runs/a?account=acc"); err != nil || o.(*container).at.String() != "https://acc.blob.core.windows.net/runs" {
		t.Errorf("%v, %v", o, err)
	}
}

// TestGoogle: Google's storage is asked as S3 is, where it is.
func TestGoogle(t *testing.T) {
	for address, want := range map[string]string{
		"gs://runs/a": "https://storage.googleapis.com",
		"gs://runs?endpoint=127.0.0.1:1&insecure=true": "http://127.0.0.1:1",
	} {
		o, err := openObjects(address)
		if err != nil || o.(*bucket).client.EndpointURL().String() != want || o.(*bucket).name != "runs" {
			t.Errorf("%s: %+v, %v", address, o, err)
		}
	}
}
