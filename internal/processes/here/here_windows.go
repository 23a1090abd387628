package here

import "hightide/internal/processes"

// Table is Windows' own.
func Table() processes.Table { return &processes.Windows{} }
