package sampler

import "hightide/internal/mem"

// Vendor answers for the devices of one maker. To add one: a file, and a line in Vendors.
type Vendor interface {
	// Name is how people call it: "NVIDIA".
	Name() string
	// Devices lists what is there, as found when it was opened. It may wait a few seconds for a
	// driver, and may be called from any goroutine.
	Devices() []mem.GPU
	// Sample returns what is known now and never waits for a device. The slice is valid until the
	// next call. An error says what cannot be observed; readings may come with it.
	Sample(live []*Process) ([]Reading, error)
	// Close ends whatever the vendor keeps open.
	Close()
}

// Reading is one value of one device. Process is nil where it concerns all of the device.
type Reading struct {
	Device  string // "nvidia:0"
	Process *Process
	Name    mem.Quantity
	Time    int64 // ns, CLOCK_MONOTONIC; 0: now
	Value   int64
}

// Vendors lists every vendor, by its Name: each function returns nil where it has no device on this machine. Add yours
// here, and to answering in contract_test.go what the suite of all vendors is to open.
var Vendors = []Maker{
	{"NVIDIA", openNVIDIA},
	{"AMD", openAMD},
	{"Intel", openIntel},
}

// Maker is a vendor that may have devices here.
type Maker struct {
	Name string
	Open func(root string) Vendor
}

// OpenVendors opens those that have devices here.
func OpenVendors(root string) []Vendor {
	vendors := []Vendor{} // not nil: none was found, rather than not looked for
	for _, maker := range Vendors {
		if v := maker.Open(root); v != nil {
			vendors = append(vendors, v)
		}
	}
	return vendors
}
