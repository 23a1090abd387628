package device

import "embed"

//go:embed packed/arm64
var built embed.FS

const folder = "packed/arm64/"
