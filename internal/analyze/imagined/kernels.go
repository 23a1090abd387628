package imagined

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Built is what the framework of a run was built with, as its processes said.
type Built struct {
	CUDA          string // "13.2"
	Architectures string // "sm_75 sm_80 compute_90"; "": not known
}

// BuiltWith reads it off a recording.
func BuiltWith(run *mem.Run) (b Built) {
	for _, p := range run.Processes {
		b.CUDA = cmp.Or(b.CUDA, p.Facts[frameworks.FactCUDA])
		b.Architectures = cmp.Or(b.Architectures, p.Facts[frameworks.FactArchitectures])
	}
	return b
}

// Lacks says why such a build runs nothing on a compute capability, "" where it does. It goes by the architectures
// that it has kernels for where they are known, else by its version of CUDA.
func (b Built) Lacks(major, minor int) string {
	switch {
	case b.Architectures != "" && !runsOn(strings.Fields(b.Architectures), major, minor):
		return fmt.Sprintf("this torch build has no kernels for %d.%d", major, minor)
	case b.Architectures == "" && !b.Knows(major, minor):
		return fmt.Sprintf("CUDA %s does not know %d.%d", b.CUDA, major, minor)
	}
	return ""
}

// runsOn says whether a build for these architectures (sm_80, compute_90) has kernels for a capability. These are
// binaries of the same major version and no later minor one, or code that the driver compiles.
func runsOn(archs []string, major, minor int) bool {
	for _, arch := range archs {
		kind, number, _ := strings.Cut(strings.Trim(arch, ",[]'"), "_")
		exact := strings.TrimRight(number, "af") != number // sm_90a: for that one alone
		n, err := strconv.Atoi(strings.TrimRight(number, "af"))
		switch {
		case err != nil:
		case exact && n == major*10+minor,
			!exact && kind == "sm" && n/10 == major && n%10 <= minor,
			!exact && kind == "compute" && n <= major*10+minor:
			return true
		}
	}
	return false
}

// Knows says whether its version of CUDA compiles for a capability (release notes of CUDA).
func (b Built) Knows(major, minor int) bool {
	head, tail, _ := strings.Cut(b.CUDA, ".")
	version, err := strconv.Atoi(head)
	if err != nil {
		return true
	}
	second, _ := strconv.Atoi(strings.SplitN(tail, ".", 2)[0])
	switch {
	case version >= 13:
		return major*10+minor >= 75
	case version == 12 && second >= 8:
		return major >= 5
	case version == 12:
		return major >= 5 && major <= 9
	case version == 11:
		return major*10+minor >= 35 && (major < 9 || second >= 8)
	}
	return major < 9
}

// withoutKernels takes the verdict back where the program's framework runs nothing on such a GPU. No kernel is run
// here, so it got on; on a real one the first kernel fails. Only a list of architectures is sure enough for that. A
// program that failed after it had touched the GPU may have done so for that very reason, as where attention asks
// which kernels there are.
func withoutKernels(run *mem.Run, v *report.Imagined) {
	major, minor, ok := strings.Cut(v.Compute, ".")
	high, err1 := strconv.Atoi(major)
	low, err2 := strconv.Atoi(minor)
	b := BuiltWith(run)
	if !ok || err1 != nil || err2 != nil || b.Architectures == "" || v.Verdict == mem.VerdictUnused {
		return
	}
	failed, ofItself := strings.CutPrefix(v.How, ofItsOwn)
	if v.Verdict == mem.VerdictFailed && (!ofItself || v.Used.Or(0) == 0) {
		return
	}
	if why := b.Lacks(high, low); why != "" {
		v.Verdict, v.Headroom = mem.VerdictFailed, mem.Optional{}
		v.How = fmt.Sprintf("%s (it has %s), so the first kernel fails on a real one", why,
			strings.Join(strings.Fields(b.Architectures), ", "))
		if ofItself {
			v.How += "; here the program failed, which may follow from it: " + failed
		}
	}
}
