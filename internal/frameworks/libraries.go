package frameworks

// Libraries that train on a framework, or run what others wrote.
var (
	keras     = Framework{Name: "keras", Title: "Keras", Bench: "keras"}
	lightning = Framework{Name: "lightning", Title: "Lightning",
		Carriers: []string{"lightning", "lightning_fabric", "pytorch_lightning"}}
	pytorchLightning = Framework{Name: "pytorch-lightning", Title: "PyTorch Lightning"}
	transformers     = Framework{Name: "transformers", Title: "Transformers"}
	accelerate       = Framework{Name: "accelerate", Title: "Accelerate", Carriers: []string{"accelerate"},
		Launcher: &Launcher{Name: "accelerate launch", Modules: []string{"accelerate.commands.launch"},
			Switches: []string{"cpu", "multi-gpu", "tpu", "use-deepspeed", "use-fsdp", "use-megatron-lm",
				"use-parallelism-config", "use-xpu", "ipex", "quiet", "q", "module", "m", "no-python", "same-network",
				"enable-cpu-affinity", "debug", "standalone"},
			PerNode: []string{"num-processes"}, Nodes: "num-machines", Stays: true}}
	deepspeed = Framework{Name: "deepspeed", Title: "DeepSpeed", Carriers: []string{"deepspeed"},
		Launcher: &Launcher{Name: "deepspeed", Modules: []string{"deepspeed.launcher.runner"},
			Switches: []string{"module", "no-python", "no-local-rank", "no-ssh", "no-ssh-check", "force-multi",
				"save-pid", "bind-cores-to-rank", "quiet", "q"},
			PerNode: []string{"num-gpus", "num-accelerators"}, Stays: true}}
)
