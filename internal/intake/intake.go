// Package intake turns foreign files into mem's nouns.
//
//	snapshot pickle ──▶ Torch ──▶ mem.AllocatorSnapshot
//
// Nothing a file contains is executed; sizes and depths are bounded; keys that are not known are
// kept by name and counted as nothing worse. Read torch.go.
package intake
