package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// container keeps objects in a container of Azure's Blob Storage. Its protocol is spoken here: of it a put, a get, a
// look and a delete are needed, and Azure's own client takes more of the program than all of them.
type container struct {
	client  http.Client
	at      *url.URL // of the container
	prefix  string
	account string
	key     []byte     // signs each request; nil: what is signed already
	signed  url.Values // goes with each request
}

// blobVersion is that of the protocol, https://learn.microsoft.com/rest/api/storageservices.
const blobVersion = "2021-12-02"

// openContainer reads azblob://CONTAINER/PREFIX?account=NAME&endpoint=https://HOST. The account's name may be in
// AZURE_STORAGE_ACCOUNT; its key is in AZURE_STORAGE_KEY, or a token for the container in AZURE_STORAGE_SAS_TOKEN. One
// request may take so long.
func openContainer(u *url.URL, within time.Duration) (*container, error) {
	query := u.Query()
	c := &container{prefix: strings.Trim(u.Path, "/"), account: cmp.Or(query.Get("account"), os.Getenv("AZURE_STORAGE_ACCOUNT"))}
	if u.Host == "" || u.User != nil || c.account == "" {
		return nil, errors.New("a container is written azblob://CONTAINER/PREFIX?account=NAME; the key is read from " +
			"AZURE_STORAGE_KEY, or a token from AZURE_STORAGE_SAS_TOKEN")
	}
	at, err := url.Parse(cmp.Or(query.Get("endpoint"), "https://"+c.account+".blob.core.windows.net"))
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("an endpoint is written endpoint=https://HOST")
	}
	c.at = at.JoinPath(u.Host)
	switch key, token := os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN"); {
	case key != "":
		if c.key, err = base64.StdEncoding.DecodeString(key); err != nil {
			return nil, errors.New("AZURE_STORAGE_KEY is no key of an account: it is not written in Base64")
		}
	case token != "":
		if c.signed, err = url.ParseQuery(strings.TrimPrefix(token, "?")); err != nil {
			return nil, errors.New("AZURE_STORAGE_SAS_TOKEN is no token: it cannot be read as a query")
		}
	default:
		return nil, errors.New("neither AZURE_STORAGE_KEY nor AZURE_STORAGE_SAS_TOKEN is set")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = dialer().DialContext
	c.client = http.Client{Transport: transport, Timeout: within}
	return c, nil
}

func (c *container) put(ctx context.Context, key string, data []byte) error {
	answer, err := c.ask(ctx, http.MethodPut, c.object(key), data)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

func (c *container) get(ctx context.Context, key string) ([]byte, error) {
	answer, err := c.ask(ctx, http.MethodGet, c.object(key), nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func (c *container) has(ctx context.Context, key string, size int64) (bool, error) {
	answer, err := c.ask(ctx, http.MethodHead, c.object(key), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return answer.ContentLength == size, answer.Body.Close()
}

func (c *container) remove(ctx context.Context, key string) error {
	answer, err := c.ask(ctx, http.MethodDelete, c.object(key), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

func (c *container) object(key string) *url.URL {
	return c.at.JoinPath(path.Join(c.prefix, key[:2], key))
}

// objectTries is how often something is asked that failed on the way; between two of them are seconds.
const objectTries = 4

// ask asks until there is an answer. An error is fs.ErrNotExist where there is no such object.
func (c *container) ask(ctx context.Context, method string, at *url.URL, data []byte) (*http.Response, error) {
	for try := 1; ; try++ {
		answer, again, err := c.once(ctx, method, at, data)
		if err == nil || !again || try == objectTries {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second << (try - 1) / 2):
		}
	}
}

// once asks once; again: it may go better later.
func (c *container) once(ctx context.Context, method string, at *url.URL, data []byte) (answer *http.Response, again bool, err error) {
	query := at.Query()
	for name, values := range c.signed {
		query[name] = values
	}
	whole := *at
	whole.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, whole.String(), bytes.NewReader(data))
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("x-ms-version", blobVersion)
	request.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	if method == http.MethodPut && at.RawQuery == "" {
		sum := md5.Sum(data) // by which Azure sees that it arrived whole
		request.Header.Set("x-ms-blob-type", "BlockBlob")
		request.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
	}
	if c.key != nil {
		request.Header.Set("Authorization", "SharedKey "+c.account+":"+c.signature(request))
	}
	answer, err = c.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // it has the address, and in it the token
			err = failed.Err
		}
		return nil, ctx.Err() == nil, fmt.Errorf("%s %s: %w", method, at.Redacted(), err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, false, nil
	}
	answer.Body.Close()
	code := cmp.Or(answer.Header.Get("x-ms-error-code"), answer.Status)
	if code == "BlobNotFound" {
		return nil, false, fmt.Errorf("%s: %w", at.Path, fs.ErrNotExist)
	}
	again = answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests
	return nil, again, fmt.Errorf("%s %s: %s", method, at.Redacted(), code)
}

// signature is of "Shared Key": by https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key.
func (c *container) signature(r *http.Request) string {
	length := ""
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	lines := []string{r.Method, "", "", length, r.Header.Get("Content-MD5"), "", "", "", "", "", "", ""}
	var own []string
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			own = append(own, name+":"+strings.Join(values, ","))
		}
	}
	slices.Sort(own)
	resource := []string{"/" + c.account + r.URL.EscapedPath()}
	for name, values := range r.URL.Query() {
		resource = append(resource, name+":"+strings.Join(values, ","))
	}
	slices.Sort(resource[1:])
	mac := hmac.New(sha256.New, c.key)
	mac.Write([]byte(strings.Join(slices.Concat(lines, own, resource), "\n")))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
