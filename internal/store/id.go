package store

import (
	"crypto/rand"
	"strings"
	"time"
)

// alphabet is Crockford's base 32: sorts like the numbers, and nothing in it looks like another.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var idEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// NewID names a run: 7 digits of seconds since 2020, so that ids sort by time, and 3 random ones.
func NewID(now time.Time) string {
	var random [2]byte
	_, _ = rand.Read(random[:]) // never fails
	seconds := max(0, now.Unix()-idEpoch.Unix())
	value := uint64(seconds)<<15 | uint64(random[0])<<7 | uint64(random[1])>>1
	var id [10]byte
	for i := len(id) - 1; i >= 0; i-- {
		id[i] = alphabet[value&31]
		value >>= 5
	}
	return string(id[:])
}

// validID keeps ids that come from elsewhere from leaving the folder of runs.
func validID(id string) bool {
	if id == "" || len(id) > 64 || id[0] == '.' || id[0] == '-' {
		return false
	}
	for _, c := range id {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// validName keeps the names of attached files from leaving the folder of their run, and from its own files.
func validName(name string) bool {
	return name != "" && len(name) <= 200 && name[0] != '.' && name != Recording && !strings.ContainsAny(name, "/\x00")
}
