package launch

import "embed"

//go:embed all:lib/arm64
var built embed.FS

const folder = "lib/arm64/"
