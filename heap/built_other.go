//go:build !(linux && (amd64 || arm64))

package heap

import "embed"

var built embed.FS // nothing is preloaded on other systems

const folder = ""
