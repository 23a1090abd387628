//go:build !(linux && (amd64 || arm64))

package launch

import "embed"

var built embed.FS // programs are observed on Linux alone

const folder = ""
