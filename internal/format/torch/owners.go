package torch

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// ownersLimit is the size in bytes that a file of owners may have: 200 a tensor and place are usual.
const ownersLimit = 256 << 20

// Owners reads what the agent writes beside a snapshot: whose tensors lay where, and when. Errors say
// what in the file is not as it must be.
func Owners(r io.Reader) ([]mem.BlockOwner, error) {
	var file struct {
		Version int     `json:"version"`
		Times   []int64 `json:"times_us"`
		Owners  []struct {
			Device   string `json:"device"`
			Address  uint64 `json:"address"`
			Category string `json:"category"`
			Name     string `json:"name"`
			Seen     []int  `json:"seen"`
		} `json:"owners"`
	}
	limited := &io.LimitedReader{R: r, N: ownersLimit}
	if err := json.NewDecoder(limited).Decode(&file); err != nil {
		return nil, fmt.Errorf("read owners: %w", err)
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("read owners: version %d is not known, only 1", file.Version)
	}
	all := make([]mem.BlockOwner, 0, len(file.Owners))
	for i, o := range file.Owners {
		number, ok := strings.CutPrefix(o.Device, "cuda:")
		device, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // of the host: no block of a GPU is theirs
		}
		owner := mem.BlockOwner{Device: device, Address: o.Address, Category: o.Category, Name: o.Name}
		for _, n := range o.Seen {
			if n < 0 || n >= len(file.Times) {
				return nil, fmt.Errorf("read owners: owner %d was seen at moment %d of %d", i, n, len(file.Times))
			}
			owner.Seen = append(owner.Seen, file.Times[n]*1000)
		}
		all = append(all, owner)
	}
	return all, nil
}
