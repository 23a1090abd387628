package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// objects keeps pieces of files by their key. Each is written whole or not at all, and is never changed. All methods
// may be called by several goroutines.
type objects interface {
	put(ctx context.Context, key string, data []byte) error
	get(ctx context.Context, key string) ([]byte, error) // fs.ErrNotExist: there is none
	has(ctx context.Context, key string, size int64) (bool, error)
	remove(ctx context.Context, key string) error // also where there is none
}

// objectKinds lists the kinds of object stores by the schemes of their addresses.
var objectKinds = []struct {
	scheme string
	open   func(*url.URL) (objects, error)
}{
	{"file", openFolder},
	{"s3", openBucket},
	{"gs", openGoogle},
	{"azblob", func(u *url.URL) (objects, error) { return openContainer(u, objectWithin) }},
}

// openObjects is the object store at an address; nothing of it is touched yet.
func openObjects(address string) (objects, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is no address")
	}
	var schemes []string
	for _, kind := range objectKinds {
		if u.Scheme == kind.scheme {
			return kind.open(u)
		}
		schemes = append(schemes, kind.scheme+"://")
	}
	return nil, fmt.Errorf("it does not begin with %s", strings.Join(schemes, " or "))
}

// folder keeps objects as files, two levels deep.
type folder struct{ dir string }

func openFolder(u *url.URL) (objects, error) {
	if u.Host != "" || !filepath.IsAbs(u.Path) {
		return nil, errors.New("a folder is written with its whole path: file:///srv/hightide")
	}
	return folder{filepath.Clean(u.Path)}, nil
}

func (f folder) path(key string) string { return filepath.Join(f.dir, key[:2], key) }

func (f folder) put(_ context.Context, key string, data []byte) error {
	dir := filepath.Dir(f.path(key))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".put-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), f.path(key))
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

func (f folder) get(_ context.Context, key string) ([]byte, error) { return os.ReadFile(f.path(key)) }

func (f folder) has(_ context.Context, key string, size int64) (bool, error) {
	info, err := os.Stat(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() == size, err
}

func (f folder) remove(_ context.Context, key string) error {
	if err := os.Remove(f.path(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// bucket keeps objects in a bucket of S3, or of what speaks its protocol.
type bucket struct {
	client *minio.Client
	name   string
	prefix string
}

// openBucket reads s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION&insecure=true. Keys are those of the
// environment, of ~/.aws/credentials, or of the machine's role.
func openBucket(u *url.URL) (objects, error) {
	query := u.Query()
	endpoint := query.Get("endpoint")
	if endpoint == "" {
		endpoint = "s3.amazonaws.com"
	}
	if u.Host == "" || u.User != nil {
		return nil, errors.New("a bucket is written s3://BUCKET/PREFIX; keys are read from AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials")
	}
	secure := query.Get("insecure") != "true"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.DialContext = dialer().DialContext
	client, err := minio.New(endpoint, &minio.Options{Secure: secure, Transport: transport, Region: query.Get("region"),
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{}, &credentials.IAM{Client: http.DefaultClient}})})
	if err != nil {
		return nil, err
	}
	return &bucket{client, u.Host, strings.Trim(u.Path, "/")}, nil
}

// openGoogle reads gs://BUCKET/PREFIX: Google's storage speaks S3's protocol, with keys of its own kind (HMAC) in the
// same variables.
func openGoogle(u *url.URL) (objects, error) {
	query, at := u.Query(), *u
	if query.Get("endpoint") == "" {
		query.Set("endpoint", "storage.googleapis.com")
	}
	at.Scheme, at.RawQuery = "s3", query.Encode()
	return openBucket(&at)
}

// objectWithin is how long one object may take. A network that is cut without a word is noticed sooner, one that takes
// what is sent and leads nowhere is not.
const objectWithin = 5 * time.Minute

func (b *bucket) key(key string) string { return path.Join(b.prefix, key[:2], key) }

func (b *bucket) put(ctx context.Context, key string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, objectWithin)
	defer cancel()
	_, err := b.client.PutObject(ctx, b.name, b.key(key), bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{DisableMultipart: true, SendContentMd5: true})
	return err
}

func (b *bucket) get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, objectWithin)
	defer cancel()
	object, err := b.client.GetObject(ctx, b.name, b.key(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer object.Close()
	data, err := io.ReadAll(object)
	if absent(err) {
		return nil, fmt.Errorf("%s: %w", b.key(key), fs.ErrNotExist)
	}
	return data, err
}

func (b *bucket) has(ctx context.Context, key string, size int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, objectWithin)
	defer cancel()
	info, err := b.client.StatObject(ctx, b.name, b.key(key), minio.StatObjectOptions{})
	if absent(err) {
		return false, nil
	}
	return err == nil && info.Size == size, err
}

func (b *bucket) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, objectWithin)
	defer cancel()
	if err := b.client.RemoveObject(ctx, b.name, b.key(key), minio.RemoveObjectOptions{}); !absent(err) {
		return err
	}
	return nil
}

// absent says whether an answer is that there is no such object.
func absent(err error) bool { return err != nil && minio.ToErrorResponse(err).Code == "NoSuchKey" }
