package modelfile

import (
	"cmp"
	"fmt"
	"strings"
)

// tower computes the part of a model that sees images, and what hands its result to the decoder. The fields are those
// of vision_config.
type tower struct {
	kind string // whose usual fields it has; "": the configuration names it
	add  func(*weights, fields)
}

// towers are those whose weights are computed, by the kind of the whole model. A test holds each against transformers.
var towers = map[string]tower{
	"qwen2_vl":     {"qwen2_vl_vision", (*weights).qwenTower},
	"qwen2_5_vl":   {"qwen2_5_vl_vision", (*weights).qwenTower},
	"qwen3_vl":     {"qwen3_vl_vision", (*weights).qwenTower},
	"qwen3_vl_moe": {"qwen3_vl_vision", (*weights).qwenTower},
	"mistral3":     {"pixtral", (*weights).mistralTower},
	"llama4":       {"llama4_vision_model", (*weights).llamaTower},
	"gemma3":       {"siglip_vision_model", (*weights).gemmaTower},
	"llava":        {"", (*weights).llavaTower},
	"paligemma":    {"siglip_vision_model", (*weights).paliTower},
	"idefics3":     {"idefics3_vision", (*weights).ideficsTower},
	"smolvlm":      {"idefics3_vision", (*weights).ideficsTower},
	"internvl":     {"internvl_vision", (*weights).internTower},
	"glm4v":        {"glm4v_vision", (*weights).glmTower},
	"glm4v_moe":    {"glm4v_vision", (*weights).glmTower},
}

// weights are the tensors that a model of this configuration has.
func (c *config) weights() ([]Tensor, error) {
	w, err := c.compute()
	if err != nil {
		return nil, err
	}
	t, known := towers[c.whole.text("model_type")]
	switch {
	case c.parted && !known:
		return nil, fmt.Errorf("the configuration of %s has parts besides the decoder: hightide does not know how their "+
			"weights follow from it", short(c.whole.text("model_type")))
	case known && c.shape.Quantization != "":
		return nil, fmt.Errorf("the weights are packed by %s: how many of those for images are is only in their files",
			short(c.shape.Quantization))
	case known:
		w.images(&t)
	}
	return w.tensors, w.err
}

// images makes the tower's tensors.
func (w *weights) images(t *tower) {
	v := w.whole.object("vision_config")
	kind := t.kind
	if kind == "" {
		kind = v.text("model_type")
	}
	v = v.filled(kind)
	const deepest = maxTensors / 16
	for name, largest := range map[string]int{"depth": deepest, "num_hidden_layers": deepest, "hidden_size": most,
		"embed_dim": most, "out_hidden_size": most, "intermediate_size": most, "image_size": most, "projection_dim": most,
		"vision_output_dim": most, "projector_input_dim": most, "projector_output_dim": most,
		"spatial_merge_size": 1 << 10, "mlp_ratio": 1 << 10, "scale_factor": 1 << 10} {
		if n := max(v.int(name), w.whole.int(name)); n > largest {
			w.err = fmt.Errorf("a configuration with the size %d", n)
			return
		}
	}
	t.add(w, v)
}

// qwenTower is that of Qwen's models for images.
func (w *weights) qwenTower(v fields) {
	kind := w.whole.text("model_type")
	second, third := kind == "qwen2_5_vl", strings.HasPrefix(kind, "qwen3_vl")
	hidden, width, out := v.int("hidden_size"), v.int("intermediate_size"), v.int("out_hidden_size")
	if kind == "qwen2_vl" {
		hidden, out = v.int("embed_dim"), v.int("hidden_size")
		width = hidden * v.int("mlp_ratio")
	}
	patch, merge := v.int("patch_size"), v.int("spatial_merge_size")
	channels, frames := v.int("in_channels"), v.int("temporal_patch_size")
	w.typed(w.kind, "visual.patch_embed.proj.weight", hidden, channels, frames, patch, patch)
	if third {
		w.vector("visual.patch_embed.proj.bias", hidden)
		w.add("visual.pos_embed", false, v.int("num_position_embeddings"), hidden)
	}
	for i := range v.int("depth") {
		name := fmt.Sprintf("visual.blocks.%d", i)
		w.affine(name+".norm1", !second, hidden)
		w.affine(name+".norm2", !second, hidden)
		w.add(name+".attn.qkv", true, 3*hidden, hidden)
		w.add(name+".attn.proj", true, hidden, hidden)
		if second {
			w.add(name+".mlp.gate_proj", true, width, hidden)
		}
		w.add(name+".mlp.up_proj", true, width, hidden)
		w.add(name+".mlp.down_proj", true, hidden, width)
	}
	merged := hidden * merge * merge
	merger := func(name string, norm int) {
		w.affine(name+".norm", !second, norm)
		w.add(name+".linear_fc1", true, merged, merged)
		w.add(name+".linear_fc2", true, out, merged)
	}
	merger("visual.merger", hidden)
	if third {
		for i := range list[int](v, "deepstack_visual_indexes") {
			merger(fmt.Sprintf("visual.deepstack_merger_list.%d", i), merged)
		}
	}
}

// patches makes an encoder of SigLIP or CLIP, and tells its width.
func (w *weights) patches(v fields) int {
	if v.text("model_type") == "pixtral" {
		return w.pixtral(v)
	}
	clip := v.text("model_type") == "clip_vision_model"
	hidden, width, patch := v.int("hidden_size"), v.int("intermediate_size"), v.int("patch_size")
	if hidden == 0 || width == 0 || patch == 0 || v.int("image_size") == 0 {
		w.err = fmt.Errorf("hightide does not know the sizes of the part for images, %q", short(v.text("model_type")))
		return 0
	}
	across := v.int("image_size") / patch
	positions := across * across
	const name = "vision_tower"
	w.typed(w.kind, name+".patch_embedding.weight", hidden, v.int("num_channels"), patch, patch)
	if clip {
		positions++
		w.vector(name+".class_embedding", hidden)
		w.affine(name+".pre_layernorm", true, hidden)
	} else {
		w.vector(name+".patch_embedding.bias", hidden)
	}
	w.add(name+".position_embedding", false, positions, hidden)
	for i := range v.int("num_hidden_layers") {
		layer := fmt.Sprintf("%s.encoder.%d", name, i)
		for _, part := range []string{"q", "k", "v", "out"} {
			w.add(layer+".attn."+part, true, hidden, hidden)
		}
		w.twoLayers(layer, hidden, width)
		w.affine(layer+".norm2", true, hidden)
	}
	w.affine(name+".post_layernorm", true, hidden)
	if !clip && v.bool("vision_use_head", false) {
		w.vector(name+".head.probe", 1, 1, hidden)
		w.add(name+".head.attn.qkv", true, 3*hidden, hidden)
		w.add(name+".head.attn.out", true, hidden, hidden)
		w.twoLayers(name+".head", hidden, width)
	}
	return hidden
}

// pixtral makes the encoder of Pixtral, and tells its width: positions are turned into queries and keys.
func (w *weights) pixtral(v fields) int {
	hidden, width, patch := v.int("hidden_size"), v.int("intermediate_size"), v.int("patch_size")
	w.typed(w.kind, "vision_tower.patch_conv.weight", hidden, v.int("num_channels"), patch, patch)
	w.vector("vision_tower.ln_pre.weight", hidden)
	for i := range v.int("num_hidden_layers") {
		layer := fmt.Sprintf("vision_tower.layers.%d", i)
		for _, part := range []string{"q", "k", "v", "o"} {
			w.add(layer+".attention."+part, false, hidden, hidden)
		}
		w.add(layer+".gate_proj", false, width, hidden)
		w.add(layer+".up_proj", false, width, hidden)
		w.add(layer+".down_proj", false, hidden, width)
		w.vector(layer+".attention_norm.weight", hidden)
		w.vector(layer+".ffn_norm.weight", hidden)
	}
	return hidden
}

// mistralTower is that of Mistral Small 3.1 and later, and of Ministral 3.
func (w *weights) mistralTower(v fields) {
	if kind := v.text("model_type"); kind != "" && kind != "pixtral" {
		w.err = fmt.Errorf("hightide does not know the sizes of the part for images, %q", short(kind))
		return
	}
	hidden, out := w.pixtral(v), w.shape.Hidden
	merge, bias := cmp.Or(w.whole.int("spatial_merge_size"), 2), w.whole.bool("multimodal_projector_bias", false)
	w.vector("multi_modal_projector.norm.weight", hidden)
	w.add("multi_modal_projector.patch_merger", false, hidden, hidden*merge*merge)
	w.add("multi_modal_projector.linear_1", bias, out, hidden*max(1, len(list[int](w.whole, "vision_feature_layer"))))
	w.add("multi_modal_projector.linear_2", bias, out, out)
}

// llamaTower is that of Llama 4.
func (w *weights) llamaTower(v fields) {
	hidden, width, patch := v.int("hidden_size"), v.int("intermediate_size"), v.int("patch_size")
	across := v.int("image_size") / max(1, patch)
	const name = "vision_model"
	w.vector(name+".class_embedding", hidden)
	w.add(name+".positional_embedding_vlm", false, across*across+1, hidden)
	w.add(name+".patch_embedding", false, hidden, v.int("num_channels")*patch*patch)
	w.affine(name+".layernorm_pre", true, hidden)
	w.affine(name+".layernorm_post", true, hidden)
	for i := range v.int("num_hidden_layers") {
		layer := fmt.Sprintf("%s.layers.%d", name, i)
		for _, part := range []string{"q", "k", "v", "o"} {
			w.add(layer+".attn."+part, true, hidden, hidden)
		}
		w.twoLayers(layer, hidden, width)
		w.affine(layer+".norm2", true, hidden)
	}
	w.add(name+".vision_adapter.fc1", false, v.int("projector_input_dim"), width)
	w.add(name+".vision_adapter.fc2", false, v.int("projector_output_dim"), v.int("projector_output_dim"))
	w.add("multi_modal_projector.linear_1", v.bool("multi_modal_projector_bias", false), w.shape.Hidden,
		v.int("vision_output_dim"))
}

// twoLayers makes an MLP and its norm.
func (w *weights) twoLayers(name string, hidden, width int) {
	w.affine(name+".norm1", true, hidden)
	w.add(name+".mlp.fc1", true, width, hidden)
	w.add(name+".mlp.fc2", true, hidden, width)
}

func (w *weights) gemmaTower(v fields) {
	hidden := w.patches(v)
	w.vector("multi_modal_projector.mm_input_projection_weight", hidden, w.shape.Hidden)
	w.vector("multi_modal_projector.mm_soft_emb_norm.weight", hidden)
}

func (w *weights) llavaTower(v fields) {
	hidden, out := w.patches(v), w.shape.Hidden
	bias := w.whole.bool("multimodal_projector_bias", true)
	w.add("multi_modal_projector.linear_1", bias, out, hidden*max(1, len(list[int](w.whole, "vision_feature_layer"))))
	w.add("multi_modal_projector.linear_2", bias, out, out)
}

func (w *weights) paliTower(v fields) {
	w.add("multi_modal_projector.linear", true, cmp.Or(w.whole.int("projection_dim"), 2048), w.patches(v))
}

func (w *weights) ideficsTower(v fields) {
	hidden, scale := w.patches(v), cmp.Or(w.whole.int("scale_factor"), 2)
	w.add("connector.modality_projection.proj", false, w.shape.Hidden, hidden*scale*scale)
}

// internTower is that of InternVL from 3 on.
func (w *weights) internTower(v fields) {
	hidden, width, out := v.int("hidden_size"), v.int("intermediate_size"), w.shape.Hidden
	patch, bias := v.side("patch_size"), v.bool("attention_bias", false)
	across := v.side("image_size") / max(1, patch)
	const name = "vision_tower"
	w.typed(w.kind, name+".projection.weight", hidden, v.int("num_channels"), patch, patch)
	w.vector(name+".projection.bias", hidden)
	w.vector(name+".cls_token", hidden)
	if v.bool("use_mask_token", false) {
		w.vector(name+".mask_token", hidden)
	}
	if v.bool("use_absolute_position_embeddings", true) {
		w.add(name+".position_embeddings", false, across*across+1, hidden)
	}
	for i := range v.int("num_hidden_layers") {
		layer := fmt.Sprintf("%s.layer.%d", name, i)
		for _, part := range []string{"q_proj", "k_proj", "v_proj", "projection_layer"} {
			w.add(layer+".attention."+part, bias || part == "projection_layer", hidden, hidden)
		}
		for _, part := range []string{"q_norm", "k_norm"} {
			if v.bool("use_qk_norm", false) {
				w.vector(layer+".attention."+part+".weight", hidden)
			}
		}
		w.add(layer+".mlp.fc1", true, width, hidden)
		w.add(layer+".mlp.fc2", true, hidden, width)
		w.affine(layer+".layernorm_before", v.text("norm_type") != "rms_norm", hidden)
		w.affine(layer+".layernorm_after", v.text("norm_type") != "rms_norm", hidden)
		w.vector(layer+".lambda_1", hidden)
		w.vector(layer+".lambda_2", hidden)
	}
	if !v.bool("use_mean_pooling", true) {
		w.affine(name+".layernorm", true, hidden)
	}
	merge := 2
	if ratio := w.whole.float("downsample_ratio"); ratio > 1.0/1024 {
		merge = int(1 / ratio)
	}
	w.affine("multi_modal_projector.layer_norm", true, hidden*merge*merge)
	w.add("multi_modal_projector.linear_1", true, out, hidden*merge*merge)
	w.add("multi_modal_projector.linear_2", true, out, out)
}

// glmTower is that of GLM-4.1V, 4.5V and 4.6V.
func (w *weights) glmTower(v fields) {
	hidden, width, out := v.int("hidden_size"), v.int("intermediate_size"), v.int("out_hidden_size")
	patch, merge := v.side("patch_size"), v.int("spatial_merge_size")
	across := v.side("image_size") / max(1, patch)
	channels, frames := v.int("in_channels"), v.side("temporal_patch_size")
	w.typed(w.kind, "visual.patch_embed.proj.weight", hidden, channels, frames, patch, patch)
	w.vector("visual.patch_embed.proj.bias", hidden)
	w.add("visual.embeddings.position_embedding", false, across*across, hidden)
	for i := range v.int("depth") {
		name := fmt.Sprintf("visual.blocks.%d", i)
		w.vector(name+".norm1.weight", hidden)
		w.vector(name+".norm2.weight", hidden)
		w.add(name+".attn.qkv", v.bool("attention_bias", false), 3*hidden, hidden)
		w.add(name+".attn.proj", false, hidden, hidden)
		w.add(name+".mlp.gate_proj", false, out, hidden)
		w.add(name+".mlp.up_proj", false, out, hidden)
		w.add(name+".mlp.down_proj", false, hidden, out)
	}
	w.vector("visual.post_conv_layernorm.weight", hidden)
	w.typed(w.kind, "visual.downsample.weight", out, hidden, merge, merge)
	w.vector("visual.downsample.bias", out)
	w.vector("visual.post_layernorm.weight", hidden)
	w.add("visual.merger.proj", false, out, out)
	w.affine("visual.merger.post_projection_norm", true, out)
	w.add("visual.merger.gate_proj", false, width, out)
	w.add("visual.merger.up_proj", false, width, out)
	w.add("visual.merger.down_proj", false, out, width)
}

// side is a size that may be written once for each side, as those of square images.
func (f fields) side(name string) int {
	if each := list[int](f, name); len(each) > 0 {
		return min(each[0], most)
	}
	return f.int(name)
}
