package modelfile

import (
	"cmp"
	"errors"
)

// The ways in which a layer mixes tokens without attention.
const (
	mixSelective = "mamba"  // as Mamba does
	mixHeads     = "mamba2" // as Mamba 2 does, by heads
	mixDelta     = "delta"  // linear attention with a gated delta rule
	mixConv      = "conv"   // a short convolution between two gates
)

// mixer makes the matrices by which a layer mixes tokens besides attention, or in its place.
func (w *weights) mixer(name string) {
	switch w.family.mixer {
	case mixSelective:
		w.selective(name + ".mamba")
	case mixHeads:
		w.byHeads(name + ".mamba")
	case mixDelta:
		w.delta(name + ".linear_attn")
	case mixConv:
		w.conv(name + ".conv")
	}
}

// wide says whether a size that was multiplied is one that a model may have.
func (w *weights) wide(sizes ...int) bool {
	for _, n := range sizes {
		if n > most*16 || n < 0 {
			w.err = errors.New("a configuration whose states are larger than those of any model")
			return false
		}
	}
	return true
}

func (w *weights) convolution(name string, bias bool, width, kernel int) {
	w.vector(name+".conv1d.weight", width, 1, kernel)
	if bias {
		w.vector(name+".conv1d.bias", width)
	}
}

func (w *weights) selective(name string) {
	hidden, inner, state := w.shape.Hidden, w.inner(), w.int("mamba_d_state", "state_size")
	rank := cmp.Or(w.int("mamba_dt_rank", "time_step_rank"), (hidden+15)/16)
	if !w.wide(inner, state, rank) {
		return
	}
	bias := w.bool("mamba_proj_bias", w.bool("use_bias", false))
	w.vector(name+".A_log", inner, state)
	w.vector(name+".D", inner)
	w.convolution(name, w.bool("mamba_conv_bias", w.bool("use_conv_bias", true)), inner, w.int("mamba_d_conv", "conv_kernel"))
	w.linear(name+".in_proj", bias, 2*inner, hidden)
	w.linear(name+".x_proj", false, rank+2*state, inner)
	w.linear(name+".dt_proj", true, inner, rank)
	w.linear(name+".out_proj", bias, hidden, inner)
	if w.shape.Kind == "jamba" {
		w.vector(name+".dt_layernorm.weight", rank)
		w.vector(name+".b_layernorm.weight", state)
		w.vector(name+".c_layernorm.weight", state)
	}
}

func (w *weights) byHeads(name string) {
	hidden, inner, state := w.shape.Hidden, w.inner(), w.int("mamba_d_state", "ssm_state_size", "state_size")
	heads, groups := w.int("mamba_n_heads", "mamba_num_heads", "num_heads"), max(1, w.int("mamba_n_groups", "n_groups"))
	if !w.wide(inner, state, heads, groups, groups*state) {
		return
	}
	bias := w.bool("mamba_proj_bias", w.bool("use_bias", false))
	if w.shape.Kind == "nemotron_h" {
		bias = w.bool("use_bias", false)
	}
	mixed := inner + 2*groups*state
	w.vector(name+".dt_bias", heads)
	w.vector(name+".A_log", heads)
	w.vector(name+".D", heads)
	w.convolution(name, w.bool("mamba_conv_bias", w.bool("use_conv_bias", true)), mixed, w.int("mamba_d_conv", "conv_kernel"))
	w.linear(name+".in_proj", bias, inner+mixed+heads, hidden)
	if w.shape.Kind != "falcon_h1" || w.bool("mamba_rms_norm", false) {
		w.vector(name+".norm.weight", inner)
	}
	w.linear(name+".out_proj", w.bool("projectors_bias", bias), hidden, inner)
}

func (w *weights) delta(name string) {
	hidden, head, heads := w.shape.Hidden, w.int("linear_value_head_dim"), w.int("linear_num_value_heads")
	keys, values := w.int("linear_num_key_heads")*w.int("linear_key_head_dim"), heads*head
	if !w.wide(keys, values, heads) {
		return
	}
	w.vector(name+".dt_bias", heads)
	w.vector(name+".A_log", heads)
	w.convolution(name, false, 2*keys+values, w.int("linear_conv_kernel_dim"))
	if w.shape.Kind == "qwen3_next" {
		w.linear(name+".in_proj_qkvz", false, 2*keys+2*values, hidden)
		w.linear(name+".in_proj_ba", false, 2*heads, hidden)
	} else {
		w.linear(name+".in_proj_qkv", false, 2*keys+values, hidden)
		w.linear(name+".in_proj_z", false, values, hidden)
		w.linear(name+".in_proj_b", false, heads, hidden)
		w.linear(name+".in_proj_a", false, heads, hidden)
	}
	w.vector(name+".norm.weight", head)
	w.linear(name+".out_proj", false, hidden, values)
}

func (w *weights) conv(name string) {
	hidden, bias := w.shape.Hidden, w.bool("conv_bias", false)
	w.convolution(name, bias, hidden, w.int("conv_L_cache"))
	w.linear(name+".in_proj", bias, 3*hidden, hidden)
	w.linear(name+".out_proj", bias, hidden, hidden)
}
