package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/server"
	"hightide/internal/store"
)

// dayViewers watch each run.
const dayViewers = 10

// held is what a server holds on to.
type held struct {
	Heap       uint64 `json:"heap"`
	Goroutines int    `json:"goroutines"`
	Files      int    `json:"files"`
}

func measure() (h held) {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	files, _ := os.ReadDir("/proc/self/fd")
	return held{stats.HeapAlloc, runtime.NumGoroutine(), len(files)}
}

const token = "token of this test"

// client sends the token.
var client = &http.Client{Transport: withToken{}}

type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestServerDay has a server show run after run of five minutes at 10 Hz, each watched by ten, reported, drawn and
// deleted. It says what the server holds on to after a quarter of them and at the end. 288 of them are a day.
func TestServerDay(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("HIGHTIDE_DAY"))
	if err != nil {
		t.Skip("HIGHTIDE_DAY says not how many runs; bench/server.py does")
	}
	kept, err := store.Open(store.Place{Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	made, handler := server.New(&engine.Engine{DataDir: t.TempDir(), Store: kept}, server.Options{Token: token})
	front := httptest.NewServer(handler)
	defer made.Close()
	defer front.Close()
	var figures struct {
		Early held `json:"early"`
		Late  held `json:"late"`
	}
	for i := range runs {
		if i == runs/4 {
			figures.Early = measure()
		}
		watchedRun(t, kept, front.URL+"/api/v1")
	}
	figures.Late = measure()
	text, err := json.Marshal(figures)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("day", string(text))
}

// watchedRun is the life of one run.
func watchedRun(t *testing.T, kept store.Store, api string) {
	w, err := kept.Create(mem.RunInfo{Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"},
		StartMono: 1, StartWall: 1})
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, mem.Process{ID: 1, PID: 1, Role: "main", Start: 1})
	for i, c := range curves {
		write(t, w, mem.SeriesDef{ID: uint32(i + 1), Process: 1, Name: c.name, Unit: c.unit, Label: mem.Measured})
	}
	ended := make(chan error, dayViewers)
	for range dayViewers {
		go func() { ended <- watchToEnd(api + "/runs/" + w.ID() + "/live") }()
	}
	for now := int64(1); now < 300*second; now += interval {
		for i := range curves {
			write(t, w, mem.Samples{Series: uint32(i + 1), Times: []int64{now}, Values: []int64{now % (1 << 30)}})
		}
		if now/interval%10 == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	fetch(t, api+"/runs/"+w.ID()+"/report")
	write(t, w, mem.End{Time: 300 * second, ExitCode: mem.Some(0), Reason: "exit"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range dayViewers {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/series", "/report", "/events", "/findings"} {
		fetch(t, api+"/runs/"+w.ID()+path)
	}
	request, err := http.NewRequest(http.MethodDelete, api+"/runs/"+w.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

// watchToEnd reads a live run until it says that it has ended.
func watchToEnd(address string) error {
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the stream broke off: %w", err)
		}
		if strings.HasPrefix(line, "event: end") {
			return nil
		}
	}
}

func fetch(t *testing.T, address string) {
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", address, response.Status, err)
	}
}
