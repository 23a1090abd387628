package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3bolt"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"hightide/internal/testkit"
)

// bucketName is of the bucket that the store of objects has.
const bucketName = "runs"

// serveObjects is a program that speaks S3 and keeps each object in one transaction of a file, so that one that was
// answered for outlasts a kill: objectstore FILE ADDRESS.
func serveObjects() {
	backend, err := s3bolt.NewFile(os.Args[1])
	if err == nil {
		if there, _ := backend.BucketExists(bucketName); !there {
			err = backend.CreateBucket(bucketName)
		}
	}
	if err == nil {
		err = http.ListenAndServe(os.Args[2], gofakes3.New(backend).Server())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// objectStore is such a program, which can be killed and started again where it was.
type objectStore struct {
	file, address string
	process       *exec.Cmd
}

func startObjects(t *testing.T, dir string) *objectStore {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &objectStore{file: filepath.Join(dir, "objects"), address: listener.Addr().String()}
	listener.Close()
	o.start(t)
	t.Cleanup(o.kill)
	return o
}

// start waits until it answers.
func (o *objectStore) start(t *testing.T) {
	t.Helper()
	o.process = exec.Command("objectstore", o.file, o.address)
	o.process.Stderr = os.Stderr
	if err := o.process.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		answer, err := http.Get("http://" + o.address + "/")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
}

func (o *objectStore) kill() {
	_ = o.process.Process.Kill()
	_ = o.process.Wait()
}

// objects are how many it has.
func (o *objectStore) objects(t *testing.T) (n int) {
	t.Helper()
	client, err := minio.New(o.address, &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""), Region: "eu"})
	if err != nil {
		t.Fatal(err)
	}
	for object := range client.ListObjects(t.Context(), bucketName, minio.ListObjectsOptions{Recursive: true}) {
		if n++; object.Err != nil {
			t.Fatal(object.Err)
		}
	}
	return n
}

// over is the bucket's address as it is reached by a wire.
func over(w *testkit.Wire) string {
	return "s3://" + bucketName + "/team?" +
		url.Values{"endpoint": {w.Address().String()}, "insecure": {"true"}, "region": {"eu"}}.Encode()
}
