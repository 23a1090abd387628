package store_test

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"hightide/internal/store"
	"hightide/internal/testkit"
)

func TestTeamInAFolder(t *testing.T) {
	server := testkit.StartPostgres(t)
	keeps(t, func(t *testing.T) store.Store { return team(t, server.New(t), "file://"+t.TempDir()) })
}

func TestTeamInABucket(t *testing.T) {
	server, objects := testkit.StartPostgres(t), bucket(t)
	keeps(t, func(t *testing.T) store.Store { return team(t, server.New(t), objects) })
}

func TestTeamInAContainer(t *testing.T) {
	server, objects := testkit.StartPostgres(t), store.NewAzurite(t)
	keeps(t, func(t *testing.T) store.Store { return team(t, server.New(t), objects) })
}

func team(t *testing.T, database, objects string) *store.Team {
	t.Helper()
	s, err := store.OpenTeam(database, objects, t.TempDir())
	must(t, err)
	return s
}

// bucket is the address of an empty bucket of a server that speaks S3 and ends with the test.
func bucket(t *testing.T) string {
	backend := s3mem.New()
	must(t, backend.CreateBucket("runs"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	at, err := url.Parse(server.URL)
	must(t, err)
	return "s3://runs/team?" + url.Values{"endpoint": {at.Host}, "insecure": {"true"}, "region": {"eu"}}.Encode()
}
