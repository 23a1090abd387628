package growth

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// among counts the processes and the devices that a growth was seen in; devices is 0 for the host.
func (g *growing) among() (processes, devices int) {
	ids, names := map[uint32]bool{}, map[string]bool{}
	for _, s := range g.shares {
		ids[s.process] = true
		if s.device != "" {
			names[s.device] = true
		}
	}
	return len(ids), len(names)
}

// among says which processes and devices a growth is of, where these are several or another than the leading one.
func (in *Found) among(g *growing) (said string) {
	processes, devices := g.among()
	switch {
	case processes > 1:
		at := ""
		if g.others > 0 {
			at = " at once"
		}
		said = fmt.Sprintf(" %s %d processes%s; the figures are their sum%s.", g.alike("in"), processes, at, g.most(in))
	case devices > 1:
		said = fmt.Sprintf(" %s %d devices; the figures are their sum%s.", g.alike("on"), devices, g.most(in))
	}
	if processes == 1 && g.process != in.Leader && len(g.lines) > 0 {
		said += fmt.Sprintf(" It is in %s.", in.ProcessName(g.process))
	}
	if g.others > 0 {
		said += fmt.Sprintf(" %s showed the same at other times: what a process keeps goes with it when it ends.",
			report.Counted(int64(g.others), "process"))
	}
	return said
}

// alike begins what is said of several processes or devices: whether each grows as much, to a tenth.
func (g *growing) alike(where string) string {
	least, most := g.extremes()
	if least.slope >= 0.9*most.slope {
		return "The same " + where
	}
	return "It grows " + where
}

// most names the one that grows most where they differ.
func (g *growing) most(in *Found) string {
	least, most := g.extremes()
	if least.slope >= 0.9*most.slope {
		return ""
	}
	where := "in " + in.ProcessName(most.process)
	if processes, _ := g.among(); processes == 1 {
		where = "on " + most.device
	}
	return fmt.Sprintf(", most %s: %v a %s", where, bytesPer(most.slope), g.unit())
}

// extremes are the process, or its device, that grows least, and the one that grows most.
func (g *growing) extremes() (least, most share) {
	var each []share
	for _, s := range g.shares {
		same := func(o share) bool { return o.process == s.process && o.device == s.device }
		if i := slices.IndexFunc(each, same); i >= 0 {
			each[i].slope += s.slope
			continue
		}
		each = append(each, s)
	}
	by := func(a, b share) int { return cmp.Compare(a.slope, b.slope) }
	return slices.MinFunc(each, by), slices.MaxFunc(each, by)
}

// onDevice is " on cuda:1" of what grows on one device that is known.
func (g *growing) onDevice() string {
	if _, devices := g.among(); devices != 1 {
		return ""
	}
	return " on " + g.shares[0].device
}

// lasting is how long memory lasts at some rate.
type lasting struct {
	turns float64   // steps or minutes
	room  mem.Bytes // that was left
	of    string    // of what: "of the machine's memory"
}

// left is how long it takes until memory is full, at the rates of some shares: of the host, or of the device that is
// full first. What goes with processes that come and go fills nothing. Where one of the devices is not known by what its
// driver says, nothing is.
func (in *Found) left(all []share, source string) (lasting, bool) {
	shares := slices.DeleteFunc(slices.Clone(all), func(s share) bool { return s.passing })
	if source != "device" {
		room, of := in.HostRoom()
		return timeTo(room, of, atTheirHighest(shares))
	}
	byCard := map[string][]share{}
	for _, s := range shares {
		card, ok := in.cardOf(s.process, s.device)
		if !ok {
			return lasting{}, false
		}
		byCard[card.Device] = append(byCard[card.Device], s)
	}
	first, ok := lasting{turns: math.Inf(1)}, false
	for _, device := range slices.Sorted(maps.Keys(byCard)) {
		of := "of the device"
		if len(in.Run.Info.Host.GPUs) > 1 {
			of = "of " + device
		}
		if last, known := timeTo(in.deviceRoom(device), of, atTheirHighest(byCard[device])); known && last.turns < first.turns {
			first, ok = last, true
		}
	}
	return first, ok
}

func sumOf(shares []share) (slope float64) {
	for _, s := range shares {
		slope += s.slope
	}
	return slope
}

// atTheirHighest is the rate at which the peaks of shares rise.
func atTheirHighest(shares []share) (slope float64) {
	for _, s := range shares {
		slope += s.slope + s.copies
	}
	return slope
}

func timeTo(room mem.Optional, of string, slope float64) (lasting, bool) {
	bytes, ok := room.Get()
	if !ok || slope <= 0 {
		return lasting{}, false
	}
	return lasting{float64(bytes) / slope, mem.Bytes(bytes), of}, true
}

// cardOf is what is in use on the device that a process's framework calls by a name: the driver's series of the name
// itself, else of the one device that the driver has the process on, else of the one with the same number, unless the
// program is shown only some of them.
func (in *Found) cardOf(process uint32, name string) (*mem.Series, bool) {
	var cards []*mem.Series
	has := map[string]bool{}
	for _, s := range in.Run.Series {
		switch {
		case len(s.Values) == 0:
		case s.Name == mem.SeriesDeviceUsed && s.Process == 0:
			cards = append(cards, s)
		case s.Name == mem.SeriesDeviceProcess && s.Process == process && s.Values[s.Peak()] > 0:
			has[s.Device] = true
		}
	}
	shown := in.Run.Info.Env["CUDA_VISIBLE_DEVICES"] + in.Run.Info.Env["HIP_VISIBLE_DEVICES"] +
		in.Run.Info.Env["ROCR_VISIBLE_DEVICES"]
	for _, is := range []func(*mem.Series) bool{
		func(c *mem.Series) bool { return c.Device == name },
		func(c *mem.Series) bool { return len(has) == 1 && has[c.Device] },
		func(c *mem.Series) bool { return shown == "" && numberOf(c.Device) == numberOf(name) && name != "" },
		func(c *mem.Series) bool { return len(cards) == 1 && len(in.Run.Info.Host.GPUs) == 1 },
	} {
		for _, card := range cards {
			if is(card) {
				return card, true
			}
		}
	}
	return nil, false
}

// numberOf is the number at the end of a device's name, as of "nvidia:1"; -1: it has none.
func numberOf(device string) int {
	_, number, _ := strings.Cut(device, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// deviceRoom is what was left of a device when most of it was in use.
func (in *Found) deviceRoom(device string) mem.Optional {
	vendor, _, _ := strings.Cut(device, ":")
	for _, gpu := range in.Run.Info.Host.GPUs {
		all, known := gpu.Memory.Get()
		if !known || gpu.Index != numberOf(device) ||
			!strings.EqualFold(gpu.Vendor, vendor) && len(in.Run.Info.Host.GPUs) > 1 {
			continue
		}
		for _, s := range in.Run.Series {
			if s.Name == mem.SeriesDeviceUsed && s.Process == 0 && s.Device == device && len(s.Values) > 0 {
				return mem.Some(max(all-s.Values[s.Peak()], 0))
			}
		}
	}
	return mem.Optional{}
}
