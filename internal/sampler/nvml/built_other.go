//go:build !(linux && (amd64 || arm64))

package nvml

import "embed"

var built embed.FS // programs are observed on Linux alone

const folder = ""
