package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
)

// digest stands for a secret: two are compared without telling by the time how much of them is alike.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

func (d *digest) is(secret string) bool {
	other := digestOf(secret)
	return secret != "" && subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

func newSecret() string { return rand.Text() }
