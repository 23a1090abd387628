package heap

import "embed"

//go:embed packed/amd64
var built embed.FS

const folder = "packed/amd64/"
