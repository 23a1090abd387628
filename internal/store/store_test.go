package store_test

import (
	"testing"

	"hightide/internal/store"
	"hightide/internal/store/storetest"
)

func TestFiles(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return store.OpenFiles(t.TempDir()) })
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return &store.Memory{} })
}
