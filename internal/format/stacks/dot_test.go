package stacks

import (
	"testing"

	"hightide/internal/mem"
)

func TestDotName(t *testing.T) {
	for _, c := range []struct {
		l    mem.Location
		want string
	}{
		{mem.Location{Function: "<module>", File: "/home/me/train.py", Line: 3}, "<module> (train.py:3)"},
		{mem.Location{Function: "<lambda>", File: "train.py", Line: 3}, "<lambda> (train.py:3)"},
		{mem.Location{Function: "at::(anonymous namespace)::wrapper_CUDA_bmm(at::Tensor const&, at::Tensor const&)",
			File: "RegisterCUDA.cpp"}, "at::wrapper_CUDA_bmm (RegisterCUDA.cpp)"},
		{mem.Location{Function: "c10::impl::wrap<at::Tensor (c10::List<long>), 1>::call(c10::OperatorKernel*)", File: "??"},
			"c10::impl::wrap::call"},
		{mem.Location{Function: "std::operator<< "}, "std::operator"},
		{mem.Location{Function: "before the trace"}, "before the trace"},
		{mem.Location{}, "(unknown)"},
	} {
		if got := dotName(c.l); got != c.want {
			t.Errorf("%+v is drawn as %q, want %q", c.l, got, c.want)
		}
	}
}
