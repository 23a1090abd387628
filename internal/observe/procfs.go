package observe

import "hightide/internal/system"

// since1970 is the recording's clock in ns at a time in ms since 1970, which is where processes begin without a /proc.
func since1970(ms uint64) int64 { return int64(ms)*1e6 - system.WallClock() + system.Monotonic() }
