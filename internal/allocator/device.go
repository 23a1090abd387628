package allocator

import (
	"cmp"

	"hightide/internal/mem"
)

// Device is a Driver with so much memory and nobody else on it. Addresses are made up: a real
// driver's cannot be known, so they grow in one direction from a base and are never used twice.
type Device struct {
	// Capacity is what the allocator can take: the device's memory less what others hold. 0: no end.
	Capacity mem.Bytes
	// Down makes later segments lie below earlier ones.
	Down bool
	// Held is what was taken from the driver and not given back.
	Held mem.Bytes
	// Base is where addresses begin; 0: 1 TiB, or 64 TiB where they go down.
	Base uint64

	used mem.Bytes // of the address space
}

const (
	driverPage      = 2 * mem.MiB
	firstAddress    = uint64(mem.TiB)
	highestAddress  = 64 * uint64(mem.TiB)
	unlimitedMemory = 1 * mem.TiB // of address space a reservation takes where the memory is not known
)

// Reserve finds new addresses.
func (d *Device) Reserve(size mem.Bytes) uint64 {
	size = roundUp(size, driverPage)
	d.used += size
	if d.Down {
		return cmp.Or(d.Base, highestAddress) - uint64(d.used)
	}
	return cmp.Or(d.Base, firstAddress) + uint64(d.used-size)
}

// Map takes memory, if there is as much.
func (d *Device) Map(size mem.Bytes) bool {
	size = roundUp(size, driverPage)
	if d.Capacity > 0 && d.Held+size > d.Capacity {
		return false
	}
	d.Held += size
	return true
}

// Malloc takes memory at a new address.
func (d *Device) Malloc(size mem.Bytes) (uint64, bool) {
	if !d.Map(size) {
		return 0, false
	}
	return d.Reserve(size), true
}

// Free gives memory back.
func (d *Device) Free(size mem.Bytes) { d.Held -= roundUp(size, driverPage) }

func roundUp(n, step mem.Bytes) mem.Bytes { return (n + step - 1) / step * step }
