package explore

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// By is what blocks are told apart by, as by the colours of a viewer.
type By string

// What blocks are told apart by.
const (
	BySite     By = "site"
	ByCategory By = "category"
	ByModule   By = "module"
	ByStream   By = "stream"
	BySize     By = "size" // bytes
	ByAge      By = "age"  // events for which it was allocated, within the trace
)

// Filter is which blocks a reader wants. The zero Filter is all of them.
type Filter struct {
	// of a frame ("file:function"), the line's name, the category, the module, an attached text, or an address (0x…) in
	// the block; nil: any
	Pattern                *regexp.Regexp
	Site, Category, Module string // names as in Labels; "": any
	By                     By
	// of By: a name as in Labels, or of sizes and ages LOW-HIGH, the second not among them and "" for none
	Value string
}

// Wants says of blocks whether a filter has them; nil: it has all. The function remembers its answers, and is for one
// goroutine.
func (e *Explorer) Wants(f Filter) (func(n int) bool, error) {
	wants, err := e.wants(f)
	if wants == nil || err != nil {
		return nil, err
	}
	return func(n int) bool {
		e.naming.Lock()
		defer e.naming.Unlock()
		return wants(n)
	}, nil
}

// wants likewise, for who holds the lock when it calls.
func (e *Explorer) wants(f Filter) (func(n int) bool, error) {
	all := []func(n int) bool{}
	for _, of := range []Filter{{By: BySite, Value: f.Site}, {By: ByCategory, Value: f.Category},
		{By: ByModule, Value: f.Module}} {
		if of.Value != "" {
			has, _ := e.has(of)
			all = append(all, has)
		}
	}
	has, err := e.has(f)
	if err != nil {
		return nil, err
	}
	if has != nil {
		all = append(all, has)
	}
	if f.Pattern != nil {
		all = append(all, e.matcher(f.Pattern))
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return func(n int) bool {
		return !slices.ContainsFunc(all, func(is func(n int) bool) bool { return !is(n) })
	}, nil
}

// has is what a filter says by By.
func (e *Explorer) has(f Filter) (func(n int) bool, error) {
	switch f.By {
	case "":
		return nil, nil
	case BySite:
		if f.Value == usage.BeforeTrace { // as tables call blocks of which nothing else is known
			return func(n int) bool { return e.From[n] < 0 && e.Names.Of(e.Stack[n]).Name == usage.NoFrames }, nil
		}
		return e.ofStack(func(stack uint32) bool { return e.Names.Of(stack).Name == f.Value }), nil
	case ByModule:
		return e.ofStack(func(stack uint32) bool { return e.Names.Of(stack).Module == f.Value }), nil
	case ByCategory:
		return func(n int) bool { return e.categories.Of(n) == f.Value }, nil
	case ByStream:
		return func(n int) bool { return laneName(e.Lanes[e.Block.Lane[n]]) == f.Value }, nil
	case BySize, ByAge:
		low, high, err := limits(f.Value)
		if f.By == BySize {
			return func(n int) bool { return int64(e.Bytes[n]) >= low && int64(e.Bytes[n]) < high }, err
		}
		return func(n int) bool { age := int64(e.age(n)); return age >= low && age < high }, err
	}
	return nil, fail.Usage("site, category, module, stream, size or age", "blocks are not told apart by %q", string(f.By))
}

// ofStack remembers what is true of the blocks of a stack.
func (e *Explorer) ofStack(is func(stack uint32) bool) func(n int) bool {
	const no, yes = 1, 2
	known := make([]uint8, e.Stacks.Len())
	return func(n int) bool {
		stack := e.Stack[n]
		if known[stack] == 0 {
			known[stack] = no
			if is(stack) {
				known[stack] = yes
			}
		}
		return known[stack] == yes
	}
}

func limits(text string) (low, high int64, err error) {
	from, to, found := strings.Cut(text, "-")
	low, err = strconv.ParseInt(from, 10, 64)
	high = 1<<63 - 1
	if err == nil && to != "" {
		high, err = strconv.ParseInt(to, 10, 64)
	}
	if !found || err != nil {
		return 0, 0, fail.Usage("as in 1024-4096, or 1024- for no upper limit", "%q is not a range", text)
	}
	return low, high, nil
}

// age is for how many events of the trace a block was allocated.
func (e *Explorer) age(n int) int {
	return min(int(e.To[n]), e.Moments) - int(e.From[n])
}

// valueOf is what a block is by By, as a picture has it: the number of a label, bytes, or events.
func (e *Explorer) valueOf(by By, n int) int64 {
	switch by {
	case BySite:
		return int64(e.siteOf(e.Stack[n]))
	case ByModule:
		return int64(e.moduleOf(e.Stack[n]))
	case ByStream:
		return int64(e.Block.Lane[n])
	case BySize:
		return int64(e.Bytes[n])
	case ByAge:
		return int64(e.age(n))
	}
	return int64(e.categoryOf(n))
}

// matcher says whether Filter.Pattern matches, for who holds the lock.
func (e *Explorer) matcher(pattern *regexp.Regexp) func(n int) bool {
	frame := e.Stacks.Matcher(pattern)
	stacks := e.ofStack(func(stack uint32) bool {
		site := e.Names.Of(stack)
		return frame(stack) || pattern.MatchString(site.Name) || pattern.MatchString(site.Module)
	})
	byCategory := slices.ContainsFunc(usage.CategoryNames, pattern.MatchString)
	attached := e.attached(pattern)
	place, isAddress := addressIn(pattern)
	return func(n int) bool {
		return stacks(n) || byCategory && pattern.MatchString(e.categories.Of(n)) || attached(n) ||
			isAddress && place-e.AddressOf(n) < uint64(e.Bytes[n])
	}
}

// attached says whether a text that the program attached to a block's allocation matches.
func (e *Explorer) attached(pattern *regexp.Regexp) func(n int) bool {
	matches := make([]bool, len(e.Snapshot.Texts)+1)
	for number, text := range e.Snapshot.Texts {
		matches[number] = text != "" && pattern.MatchString(text)
	}
	if !slices.Contains(matches, true) {
		return func(int) bool { return false }
	}
	columns := e.textColumns()
	return func(n int) bool {
		event := int(e.From[n])
		return event >= 0 && slices.ContainsFunc(columns[:],
			func(column []uint32) bool { return matches[mem.At(column, event)] })
	}
}

// anAddress is a search for one byte of the device's memory, as error messages print it.
var anAddress = regexp.MustCompile(`^(?:\(\?i\))?0x([0-9a-fA-F]{1,16})$`)

func addressIn(pattern *regexp.Regexp) (address uint64, ok bool) {
	found := anAddress.FindStringSubmatch(pattern.String())
	if found == nil {
		return 0, false
	}
	address, err := strconv.ParseUint(found[1], 16, 64)
	return address, err == nil
}
