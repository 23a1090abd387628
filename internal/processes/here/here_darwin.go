package here

import (
	"hightide/internal/processes"
	"hightide/internal/processes/psutil"
)

// Table is gopsutil's.
func Table() processes.Table { return &psutil.Table{} }
