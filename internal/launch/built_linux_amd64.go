package launch

import "embed"

//go:embed all:lib/amd64
var built embed.FS

const folder = "lib/amd64/"
