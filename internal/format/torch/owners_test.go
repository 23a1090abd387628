package torch

import (
	"strings"
	"testing"
)

func TestOwners(t *testing.T) {
	const good = `{"version":1,"times_us":[7,9],"owners":[
 {"device":"cuda:1","address":512,"bytes":4,"category":"optimizer","name":"w","seen":[1]},
 {"device":"cpu","address":1,"bytes":4,"category":"parameters","name":"h","seen":[0]}]}`
	owners, err := Owners(strings.NewReader(good))
	if err != nil || len(owners) != 1 || owners[0].Device != 1 || owners[0].Address != 512 || owners[0].Seen[0] != 9000 {
		t.Fatalf("%+v %v", owners, err)
	}
	for text, want := range map[string]string{
		`{"version":2}`: "version 2",
		`{"version":1,"times_us":[7],"owners":[{"device":"cuda:0","seen":[1]}]}`:  "moment 1 of 1",
		`{"version":1,"times_us":[7],"owners":[{"device":"cuda:0","seen":[-1]}]}`: "moment -1",
		`{"version":1,"owners":[{"address":-1}]}`:                                 "address",
		`[`: "EOF",
	} {
		if _, err := Owners(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzOwners(f *testing.F) {
	f.Add(`{"version":1,"times_us":[7],"owners":[{"device":"cuda:0","seen":[0]}]}`)
	f.Fuzz(func(_ *testing.T, text string) { _, _ = Owners(strings.NewReader(text)) })
}
